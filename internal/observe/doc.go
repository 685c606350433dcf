// Package observe reads clusters: it watches Kubernetes objects, asks the Talos API and the Cilium agents, and keeps what the checks of
// package health judge. It changes nothing; the samples of package workloads are dry runs. When a server cannot be reached, the error is
// recorded and reading goes on until the context ends.
package observe
