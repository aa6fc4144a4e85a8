package main

import (
	"log"
	"net"
	"os"

	"github.com/miekg/dns"
)

func block(w dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetReply(query)
	question := query.Question[0]
	if question.Qtype == dns.TypeA {
		header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.IPv4zero})
	} else {
		soa, _ := dns.NewRR(question.Name + " 60 SOA ns.invalid. hostmaster.invalid. 1 3600 600 86400 60")
		reply.Ns = append(reply.Ns, soa)
	}
	w.WriteMsg(reply)
}

func forward(w dns.ResponseWriter, query *dns.Msg) {
	client := &dns.Client{Net: w.LocalAddr().Network()}
	reply, _, err := client.Exchange(query, os.Args[2])
	if err != nil {
		reply = new(dns.Msg).SetRcode(query, dns.RcodeServerFailure)
	}
	w.WriteMsg(reply)
}

func main() {
	dns.HandleFunc("ads.example.", block)
	dns.HandleFunc("tracker.example.", block)
	dns.HandleFunc(".", forward)
	for _, transport := range []string{"udp", "tcp"} {
		go func() { log.Fatal(dns.ListenAndServe(os.Args[1], transport, nil)) }()
	}
	select {}
}
