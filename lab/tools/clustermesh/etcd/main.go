// etcd is the etcd of Cilium's mesh API server. Its image contains the released program; this one is built from the same module.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
