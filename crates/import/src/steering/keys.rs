//! Spellings of the keys and words of steering in a `zonda.toml`: the only place that has them.

/// The header of the section that tells where clients are.
pub const GEO: &str = "[geo]";
/// The header of a pool's section.
pub const POOL: &str = "[[pool]]";
/// The header of a zone's section.
pub const ZONE: &str = "[[zone]]";
/// The key of a zone that maps names and types to pools.
pub const STEER: &str = "steer";
/// The header of the section of a zone that maps names and types to pools.
pub const ZONE_STEER: &str = "[zone.steer]";
/// The key of the name of a pool, a zone or a site.
pub const NAME: &str = "name";
/// The key of a zone's file.
pub const FILE: &str = "file";

/// Keys of `[geo]`.
pub mod geo {
    /// The key of the database of locations.
    pub const DATABASE: &str = "database";
    /// The key of the file of latencies.
    pub const LATENCIES: &str = "latencies-file";
    /// The key of the list of networks whose site is known.
    pub const NETWORKS: &str = "networks";
    /// The key of a network's prefix.
    pub const PREFIX: &str = "prefix";
    /// The key of the site of a network or member.
    pub const SITE: &str = "site";
    /// The key of the list of sites with the places that they serve.
    pub const SITES: &str = "sites";
    /// The key of the site of clients whose location no site serves.
    pub const DEFAULT_SITE: &str = "default-site";
    /// The key of the countries that a site serves.
    pub const COUNTRIES: &str = "countries";
    /// The key of the continents that a site serves.
    pub const CONTINENTS: &str = "continents";
    /// The key of the subdivisions of countries that a site serves.
    pub const SUBDIVISIONS: &str = "subdivisions";
    /// The key of the cities that a site serves.
    pub const CITIES: &str = "cities";
    /// The key of a site's latitude in degrees.
    pub const LATITUDE: &str = "latitude";
    /// The key of a site's longitude in degrees.
    pub const LONGITUDE: &str = "longitude";
}

/// Keys of `[[pool]]` and its members.
pub mod pool {
    /// The key of the chain of filters.
    pub const CHOOSE: &str = "choose";
    /// The key of the list of members.
    pub const MEMBERS: &str = "members";
    /// The key of a member's address.
    pub const ADDRESS: &str = "address";
    /// The key of a member that is a pool.
    pub const POOL: &str = "pool";
    /// The key of a member's record data, for types other than A and AAAA.
    pub const DATA: &str = "data";
    /// The key of a member's weight.
    pub const WEIGHT: &str = "weight";
    /// The key of a member's rank.
    pub const PRIORITY: &str = "priority";
    /// The key of the check of all members.
    pub const CHECK: &str = "check";
    /// The key that says what happens when no member is up.
    pub const WHEN_ALL_DOWN: &str = "when-all-down";
    /// The key of the number of members in an answer.
    pub const ANSWERS: &str = "answers";
    /// The key of the lowest TTL.
    pub const TTL_MIN: &str = "ttl-min";
    /// The key of the highest TTL.
    pub const TTL_MAX: &str = "ttl-max";
    /// The key of the number of members below which the pool counts as down.
    pub const UP_MIN: &str = "up-min";
    /// The word for all members in an answer.
    pub const ALL: &str = "all";
}

/// Words of `when-all-down`.
pub mod when_all_down {
    /// All members count as up.
    pub const ALL: &str = "all";
    /// The members that were up last count as up.
    pub const LAST_HEALTHY: &str = "last-healthy";
    /// The reply is SERVFAIL.
    pub const SERVFAIL: &str = "servfail";
    /// The reply says that there are no records.
    pub const NODATA: &str = "nodata";
}

/// Words of `choose`.
pub mod filter {
    /// Each member in its turn.
    pub const ROUND_ROBIN: &str = "round-robin";
    /// A random member by weight.
    pub const WEIGHTED: &str = "weighted";
    /// The members of the lowest priority number.
    pub const FAILOVER: &str = "failover";
    /// The member of the client's hash.
    pub const HASH: &str = "hash";
    /// The member of the hash of the name asked for.
    pub const HASH_NAME: &str = "hash-name";
    /// The members of the client's site, by its network or location.
    pub const GEO: &str = "geo";
    /// The members of the site that is nearest to the client.
    pub const NEAREST: &str = "nearest";
    /// The member with the lowest latency of its checks.
    pub const LATENCY: &str = "latency";
    /// The member with the lowest latency measured for the client's network.
    pub const LEARNED_LATENCY: &str = "learned-latency";
    /// Filters that look at the sites of members.
    pub const BY_SITE: &[&str] = &[GEO, NEAREST, LEARNED_LATENCY];
}

/// Keys of `check`.
pub mod check {
    /// The key of a check by TCP, whose value is the port.
    pub const TCP: &str = "tcp";
    /// The key of a check by HTTP, whose value is the path.
    pub const HTTP: &str = "http";
    /// The key of a check by HTTPS, whose value is the path.
    pub const HTTPS: &str = "https";
    /// The key of a check by a program, whose value is its arguments.
    pub const PROGRAM: &str = "program";
    /// The key of a check by a file, whose value is its path.
    pub const FILE: &str = "file";
    /// The key of the port that HTTP goes to.
    pub const PORT: &str = "port";
    /// The key of the address that is checked in place of the member's.
    pub const ADDRESS: &str = "probe-address";
    /// The key of the name of the server that HTTP asks for.
    pub const HOST: &str = "host";
    /// The key of the status codes of HTTP that are success.
    pub const STATUS: &str = "status";
    /// The key of headers of the request.
    pub const HEADERS: &str = "headers";
    /// The key of a text that the body must have.
    pub const CONTAINS: &str = "contains";
    /// The key of the time between two checks.
    pub const INTERVAL: &str = "interval";
    /// The key of the time that a check may take.
    pub const TIMEOUT: &str = "timeout";
    /// The key of the successes in a row after which a member is up.
    pub const RISE: &str = "rise";
    /// The key of the failures in a row after which a member is down.
    pub const FALL: &str = "fall";
    /// The key of the address that checks come from.
    pub const SOURCE: &str = "source";
    /// The word in a program's arguments that stands for the member's address.
    pub const MEMBER_IN_ARGUMENTS: &str = "{address}";
}
