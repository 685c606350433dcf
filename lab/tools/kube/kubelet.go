//go:build tools

package main

import _ "k8s.io/kubernetes/cmd/kubelet" // is built from this module, too: for the real Talos
