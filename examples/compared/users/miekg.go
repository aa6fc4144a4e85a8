package main

import (
	"log"
	"net"
	"os"
	"strings"

	"github.com/miekg/dns"
)

var users = map[string]string{"ann": "192.0.2.10", "bob": "192.0.2.11"}

func main() {
	dns.HandleFunc("users.example.", func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		question := query.Question[0]
		user := strings.TrimSuffix(strings.ToLower(question.Name), ".users.example.")
		address, exists := users[user]
		if exists && question.Qtype == dns.TypeA {
			header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.ParseIP(address)})
		} else {
			if !exists {
				reply.Rcode = dns.RcodeNameError
			}
			soa, _ := dns.NewRR("users.example. 60 SOA ns.users.example. hostmaster.users.example. 1 3600 600 86400 60")
			reply.Ns = append(reply.Ns, soa)
		}
		w.WriteMsg(reply)
	})
	for _, transport := range []string{"udp", "tcp"} {
		go func() { log.Fatal(dns.ListenAndServe(os.Args[1], transport, nil)) }()
	}
	select {}
}
