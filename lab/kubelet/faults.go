package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/lab/fault"
)

// nodeName is the name under which a machine registers: its own, or another under the fault node-name. Without detail
// the other is a name as Talos generates one for a machine without a name.
func (c *Cluster) nodeName(declared string) string {
	f, on := c.o.Faults.Active(fault.NodeName, declared)
	switch {
	case !on:
		return declared
	case len(validation.IsDNS1123Subdomain(f.Detail)) == 0:
		return f.Detail
	}
	sum := sha256.Sum256([]byte(declared))
	return "talos-" + hex.EncodeToString(sum[:3])
}

// flapping tells whether the fault kubelet-flaps makes the node NotReady now, and when that changes; 0: it does not
// change.
func (k *Kubelet) flapping() (broken bool, left time.Duration) {
	f, on := k.c.o.Faults.Active(fault.KubeletFlaps, k.declared())
	if !on {
		return false, 0
	}
	return f.Flapping(k.started)
}

// pullError is containerd's error for an image under the fault image-pull; empty if the fault is off.
func (c *Cluster) pullError(image string) string {
	f, on := c.o.Faults.Active(fault.ImagePull, image)
	switch {
	case !on:
		return ""
	case f.Detail != "":
		return fmt.Sprintf("rpc error: code = Unknown desc = failed to pull and unpack image %q: %s", image, f.Detail)
	}
	return fmt.Sprintf("rpc error: code = NotFound desc = failed to pull and unpack image %q: failed to resolve image: %s: not found",
		image, image)
}

// operatorMissing tells whether the fault operator-missing keeps cilium-operator from running; see operator.go.
func (c *Cluster) operatorMissing() bool { return c.o.Faults.IsActive(fault.OperatorMissing, c.o.Name) }
