// Package charttest holds the tests of package cilium on the real Cilium chart, and on Helm itself.
//
// It is a module of its own because of what only these tests need: the charts, and Helm's install action, which is far
// more than the engine that the product renders with. The charts come as a Go module, so that nothing is downloaded
// when the tests run but by go itself.
package charttest
