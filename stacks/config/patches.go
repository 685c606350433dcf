package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"gopkg.in/yaml.v3"
)

// owned are the parts of the machine configuration that other parts of the cluster go by, each with the key that
// declares it; empty where there is none, because nothing else works.
var owned = []struct{ part, key string }{
	{"cluster.clusterName", "cluster.name"},
	{"cluster.controlPlane.endpoint", "network.vip"},
	{"cluster.network.podSubnets", "network.podCIDR"},
	{"cluster.network.serviceSubnets", "network.serviceCIDR"},
	{"cluster.network.dnsDomain", ""},
	{"cluster.network.cni", ""},
	{"cluster.proxy", ""},
	{"cluster.coreDNS", "coreDNS"},
	{"cluster.allowSchedulingOnControlPlanes", "kubernetes.allowSchedulingOnControlPlanes"},
	{"cluster.apiServer.image", "kubernetes.version"},
	{"cluster.controllerManager.image", "kubernetes.version"},
	{"cluster.scheduler.image", "kubernetes.version"},
	{"machine.type", "nodePools[].role"},
	{"machine.network.hostname", "nodePools[].nodes[].name"},
	{"machine.install.image", "talos.version and talos.extensions"},
	{"machine.install.disk", "talos.installDisk"},
	{"machine.kubelet.image", "kubernetes.version"},
	{"machine.kubelet.nodeIP", "network.nodeCIDR"},
	{"machine.features.kubePrism", ""},
	{"machine.systemDiskEncryption", "talos.diskEncryption"},
}

// machineSecrets are the parts of the machine configuration that are made once, kept in the stack's state, and never
// stand in a file.
var machineSecrets = []string{
	"machine.token", "machine.ca", "cluster.secret", "cluster.token", "cluster.ca", "cluster.aggregatorCA", "cluster.serviceAccount",
	"cluster.etcd.ca", "cluster.aescbcEncryptionSecret", "cluster.secretboxEncryptionSecret",
}

func (v *validator) validatePatches() {
	p := v.Talos.Patches
	v.patches("talos.patches.all", p.All)
	v.patches("talos.patches.controlPlanes", p.ControlPlanes)
	v.patches("talos.patches.workers", p.Workers)
}

func (v *validator) patches(path string, patches []Patch) {
	for i, patch := range patches {
		if len(patch) > 0 {
			v.patch(fmt.Sprintf("%s[%d]", path, i), patch)
		}
	}
}

// patch checks that Talos knows what a patch sets, and that it sets nothing that is declared elsewhere. What Talos makes
// of the whole configuration is for the machine configuration's own validation to say.
func (v *validator) patch(path string, patch Patch) {
	var tree map[string]any
	if err := json.Unmarshal(patch, &tree); err != nil {
		v.found(path, "write the part of the machine configuration that the patch sets", "is not a mapping")
		return
	}
	if isJSONPatch(tree) {
		v.found(path, "write the part of the machine configuration that the patch sets, as a strategic merge patch does",
			"is a JSON patch (RFC 6902), which Talos applies to no configuration of several documents")
		return
	}
	for _, secret := range machineSecrets {
		if within(tree, secret) != nil {
			v.found(join(path, secret), "remove it; if it is in use, it is no secret any more",
				"is a machine secret, which Slipway makes and keeps in the stack's state")
			return // Talos's words about the patch might quote it
		}
	}
	for _, one := range owned {
		if within(tree, one.part) == nil {
			continue
		}
		remedy := "remove it"
		if one.key != "" {
			remedy = "set " + one.key + " instead"
		}
		v.found(join(path, one.part), remedy, "is for Slipway to set, because other parts of the cluster go by it")
	}
	v.hostDNS(path, tree)
	if tree["kind"] == "HostnameConfig" {
		v.found(path, "set nodePools[].nodes[].name instead", "is a HostnameConfig, and the machine's name is for Slipway to set")
	}
	if _, err := configloader.NewFromBytes(patch, configloader.WithAllowPatchDelete()); err != nil {
		v.found(path, "see Talos's configuration reference for "+v.Talos.Version, "is no piece of a machine configuration: %s", saidByTalos(err))
	}
}

// hostDNS checks the one option of Talos that a kind of masquerading does not go with: the packets that it forwards to
// the host's resolver bypass the stack that would bring the answers back.
func (v *validator) hostDNS(path string, tree map[string]any) {
	const part = "machine.features.hostDNS.forwardKubeDNSToHost"
	if within(tree, part) == true && v.Cilium.Masquerade == MasqueradeBPF {
		v.found(join(path, part), "remove it, or set cilium.masquerade: iptables", "true breaks the cluster's DNS with cilium.masquerade: bpf")
	}
}

// isJSONPatch reports whether a mapping is an operation of RFC 6902.
func isJSONPatch(tree map[string]any) bool {
	_, op := tree["op"]
	_, path := tree["path"]
	return op && path
}

// within looks up a value by its keys, joined by dots. It is nil where there is none, or an explicit null.
func within(tree map[string]any, path string) any {
	first, rest, more := strings.Cut(path, ".")
	if !more {
		return tree[first]
	}
	if inner, ok := tree[first].(map[string]any); ok {
		return within(inner, rest)
	}
	return nil
}

// quoted is a value of the file in an error of the YAML parser.
var quoted = regexp.MustCompile("`[^`]*`")

// saidByTalos is what Talos's loader has to say of a patch in one line, without any value out of it: one of them may be
// a secret that was written to the wrong place.
func saidByTalos(err error) string {
	const unknown = "unknown keys found during decoding:\n"
	if _, listed, found := strings.Cut(err.Error(), unknown); found {
		var tree any
		if yaml.Unmarshal([]byte(listed), &tree) == nil {
			return "it does not know " + strings.Join(slices.Sorted(slices.Values(leaves("", tree))), ", ")
		}
		return "it does not know all of its keys"
	}
	return strings.Join(strings.Fields(quoted.ReplaceAllString(err.Error(), "…")), " ")
}

// leaves lists the paths of a tree's ends.
func leaves(path string, tree any) []string {
	switch t := tree.(type) {
	case map[string]any:
		var paths []string
		for key, value := range t {
			paths = append(paths, leaves(join(path, key), value)...)
		}
		return paths
	case []any:
		var paths []string
		for i, item := range t {
			paths = append(paths, leaves(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
		return paths
	}
	return []string{path}
}
