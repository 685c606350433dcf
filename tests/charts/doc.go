// Package charts holds the tests of package cilium/chart on the real Cilium chart, and on Helm itself.
//
// It is a module of its own because of what only these tests need: the charts, and Helm, which the product leaves to the
// Kubernetes provider. The charts come as a Go module, so that nothing is downloaded when the tests run but by go itself.
package charts
