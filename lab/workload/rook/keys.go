package rook

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// cephxSpec is the part of a spec that says of which type new keys are.
type cephxSpec struct{ KeyType string }

// tagOf is the tag of an image.
func tagOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }

// knowsKeyTypes tells whether the operator's release knows types of keys, and rotates keys of daemons to another type. An older one leaves
// both to Ceph: then a new Ceph gives new users keys with which no kernel here maps an image.
func (o *rookOperator) knowsKeyTypes() bool {
	own := ceph.ParseVersion(tagOf(o.Spec.Image))
	return own.AtLeast(ceph.Version{1, 20, 5}) || own.AtLeast(ceph.Version{1, 19, 9}) || own[0] > 1 || own[0] == 1 && own[1] > 20
}

// keyType is the type of a new key of a spec, as far as the operator knows it.
func (o *rookOperator) keyType(of cephxSpec) ceph.KeyType {
	if !o.knowsKeyTypes() {
		return ""
	}
	return ceph.KeyType(of.KeyType)
}

// keys rotates the keys of the daemons, if the spec says so, and mutes what the spec mutes.
func (o *rookOperator) keys(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster) error {
	for code, check := range spec.HealthCheck.MuteHealthWarning {
		c.Mute(code, check.Policy == "mute")
	}
	if !o.knowsKeyTypes() {
		return nil
	}
	c.RotateDaemonKeys(spec.Security.CephX.Daemon.KeyGeneration)
	if err := o.applyMonSecret(ctx, cr, c); err != nil {
		return err
	}
	return o.setStatus(ctx, cephClusters, cr, func(s map[string]any) {
		cephx := map[string]any{}
		for _, kind := range []string{"admin", "mgr", "mon", "osd"} {
			cephx[kind] = map[string]any{"keyGeneration": c.KeyGeneration()}
		}
		s["cephx"] = cephx
	})
}
