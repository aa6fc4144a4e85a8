// The etcd that this version of Kubernetes is released with: Debian's may be too old for lists that
// are streamed.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
