; The zone of the shop.
@       SOA ns1 hostmaster (
                7       ; serial
                7200 30M 3D 900 )
@       NS      ns1.@Z
@       MX      10 mail
ns1     A       192.0.2.53
www     300/30  DYNA multifo!www
        TXT     "it has records beside"
big     600     DYNA multifo!big
mail    300     DYNA multifo!mail
cdn     300/60  DYNC weighted!cdn
api             DYNA weighted!api
sets    60      DYNA weighted!sets
db      30/5    DYNA simplefo!db
fixed   30/5    DYNA static!fixed
me      30      DYNA reflect
shop    120     DYNC metafo!shop
shop-ny 120     DYNA metafo!shop/nyc
deep    120     DYNA metafo!deep
@       600     DYNA geoip!global
near    600     DYNA geoip!near
$INCLUDE .more.inc sub
static  A       192.0.2.1
