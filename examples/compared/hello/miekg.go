package main

import (
	"log"
	"os"

	"github.com/miekg/dns"
)

func main() {
	dns.HandleFunc("hello.example.", func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		question := query.Question[0]
		if dns.CountLabel(question.Name) > 2 {
			reply.Rcode = dns.RcodeNameError
		} else if question.Qtype == dns.TypeTXT {
			header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}
			reply.Answer = append(reply.Answer, &dns.TXT{Hdr: header, Txt: []string{"Hello, world!"}})
		}
		w.WriteMsg(reply)
	})
	for _, transport := range []string{"udp", "tcp"} {
		go func() { log.Fatal(dns.ListenAndServe(os.Args[1], transport, nil)) }()
	}
	select {}
}
