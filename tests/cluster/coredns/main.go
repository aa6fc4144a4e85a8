// CoreDNS with the plugins that it is released with.
package main

import (
	_ "github.com/coredns/coredns/core/plugin" // registers them
	"github.com/coredns/coredns/coremain"
)

func main() {
	coremain.Run()
}
