package main

import (
	"bufio"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

var tokens sync.Map // "account token"

func main() {
	dns.HandleFunc("auth.example.", func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		question := query.Question[0]
		account := strings.TrimSuffix(strings.ToLower(question.Name), ".auth.example.")
		if question.Qtype == dns.TypeTXT {
			tokens.Range(func(key, _ any) bool {
				of, token, _ := strings.Cut(key.(string), " ")
				if of == account {
					header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}
					reply.Answer = append(reply.Answer, &dns.TXT{Hdr: header, Txt: []string{token}})
				}
				return true
			})
		}
		w.WriteMsg(reply)
	})
	for _, transport := range []string{"udp", "tcp"} {
		go func() { log.Fatal(dns.ListenAndServe(os.Args[1], transport, nil)) }()
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, token, _ := strings.Cut(lines.Text(), " ")
		if verb == "set" {
			tokens.Store(token, true)
		} else {
			tokens.Delete(token)
		}
	}
}
