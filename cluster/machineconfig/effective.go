package machineconfig

import (
	"maps"
	"reflect"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"

	"github.com/slipway-platform/slipway/cluster"
)

// Effective returns a node's whole configuration for display: what Talos generates, then Slipway's patch, then the user's patches.
// It is a tree of maps, lists, strings, numbers and booleans. At its top are machine and cluster, and the further documents under
// their kind and name, such as "VolumeConfig STATE".
//
// The cluster's machine secrets are unknown here: a placeholder is in their place. A value of the user's patches is a Secret if it
// may be one, and every value of the secret patches is. Text that Slipway itself renders is shown.
func Effective(declared *cluster.Cluster, n cluster.Machine) (map[string]any, error) {
	c := model{*declared}
	c.Cilium.Mode = cluster.CiliumHelm // the contents of an inline manifest are not known here
	full, err := assemble(c, n)
	if err != nil {
		return nil, err
	}
	shown, err := documents(full)
	if err != nil {
		return nil, err
	}
	in := versions{shown: shown, redacted: shown, plain: shown, own: shown}
	if len(c.userPatches(n)) == 0 {
		return hide(in), nil
	}
	if in.redacted, err = documents(full.RedactSecrets("redacted")); err != nil {
		return nil, err
	}
	c.SecretPatches = cluster.SecretPatches{}
	if in.plain, err = assembled(c, n); err != nil {
		return nil, err
	}
	c.Talos.Patches, n.Patches = cluster.Patches{}, nil
	if in.own, err = assembled(c, n); err != nil {
		return nil, err
	}
	return hide(in), nil
}

func assembled(c model, n cluster.Machine) (map[string]any, error) {
	full, err := assemble(c, n)
	if err != nil {
		return nil, err
	}
	return documents(full)
}

// Same reports whether two configurations say the same, however they are written.
func Same(one, other config.Provider) (bool, error) {
	former, later, err := bothDocuments(one, other)
	return err == nil && reflect.DeepEqual(former, later), err
}

// bothDocuments takes two configurations apart.
func bothDocuments(before, after config.Provider) (was, is map[string]any, err error) {
	if was, err = documents(before); err == nil {
		is, err = documents(after)
	}
	return was, is, err
}

// documents takes a configuration apart. The result has machine and cluster at its top, and the further documents by kind and
// name, such as "VolumeConfig STATE".
func documents(full config.Provider) (map[string]any, error) {
	text, err := full.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, err
	}
	trees, err := yamlDocuments(string(text))
	if err != nil {
		return nil, err
	}
	return documentsOf(trees), nil
}

// documentsOf does the same for the trees of documents.
func documentsOf(trees []any) map[string]any {
	all := map[string]any{}
	for _, tree := range trees {
		doc, ok := tree.(map[string]any)
		if !ok {
			continue // Talos skips empty documents
		}
		doc = maps.Clone(doc)
		kind, ok := doc["kind"].(string)
		if !ok { // only the oldest and largest document has none
			maps.Copy(all, doc)
			continue
		}
		name, _ := doc["name"].(string)
		delete(doc, "kind")
		delete(doc, "apiVersion")
		delete(doc, "name")
		all[strings.TrimSpace(kind+" "+name)] = doc
	}
	return all
}
