// Package observe sees clusters: it watches Kubernetes objects, asks the Talos API and the Cilium agents, and keeps what the checks of
// package health read up to date. It only ever reads, and a cluster that comes and goes is a normal sight to it: an error is recorded as
// what was last seen, and looking goes on until the context ends.
package observe
