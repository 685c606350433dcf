package machineconfig

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

// Secret is a value of a configuration that must not be displayed.
type Secret string

// secretsIn returns the dotted paths of the values in a patch that may be secrets, sorted. It decides as Effective does. A text that
// is no YAML is an error, which holds nothing of the text.
func secretsIn(patch string) ([]string, error) {
	if len(patch) > maxPatchBytes {
		return nil, errLargePatch
	}
	paths := map[string]bool{}
	find := func(in versions) {
		in.plain, in.judge = in.shown, true
		_, secrets := Lines(hide(in))
		for path := range secrets {
			paths[path] = true
		}
	}
	// As written: Talos may be unable to read the patch, and does not keep all that it deletes.
	written, err := yamlDocuments(patch)
	if err != nil {
		return nil, errNotYAML
	}
	for _, tree := range written {
		doc := documentsOf([]any{tree})
		find(versions{shown: doc, redacted: doc})
	}
	// As Talos reads it: Talos knows some values to be secret.
	shown, redacted, err := redact(patch)
	if err == nil {
		find(versions{shown: shown, redacted: redacted})
	}
	return slices.Sorted(maps.Keys(paths)), nil
}

// redact returns the documents of a patch as Talos reads them, whole and without what Talos knows to be secret.
func redact(patch string) (shown, redacted map[string]any, err error) {
	_, err = guarded(func() (any, error) {
		loaded, err := configloader.NewFromBytes([]byte(patch), configloader.WithAllowPatchDelete())
		if err != nil {
			return nil, err
		}
		var docs []config.Document
		for _, doc := range loaded.Documents() {
			if _, deletes := doc.(configloader.Selector); !deletes {
				docs = append(docs, doc)
			}
		}
		full, err := container.New(docs...)
		if err != nil {
			return nil, err
		}
		if shown, err = documents(full); err != nil {
			return nil, err
		}
		redacted, err = documents(full.RedactSecrets("redacted"))
		return nil, err
	})
	return shown, redacted, err
}

// fromMachineSecrets is shown in place of what only the machine secrets hold.
const fromMachineSecrets = "(from the machine secrets)"

// standIns maps the values that assemble puts in place of machine secrets to what is shown for them.
var standIns = func() map[string]string {
	secrets := standInSecrets()
	shown := map[string]string{}
	for _, text := range []string{
		secrets.Cluster.ID, secrets.Cluster.Secret, secrets.TrustdInfo.Token,
		secrets.Secrets.BootstrapToken, secrets.Secrets.SecretboxEncryptionSecret,
		string(secrets.Certs.Etcd.Crt), string(secrets.Certs.Etcd.Key),
		string(secrets.Certs.K8s.Crt), string(secrets.Certs.K8s.Key),
		string(secrets.Certs.K8sAggregator.Crt), string(secrets.Certs.K8sAggregator.Key),
		string(secrets.Certs.OS.Crt), string(secrets.Certs.OS.Key),
		string(secrets.Certs.K8sServiceAccount.Key),
	} {
		shown[text] = fromMachineSecrets
		shown[base64.StdEncoding.EncodeToString([]byte(text))] = fromMachineSecrets
	}
	return shown
}()

// versions are one configuration in several versions, by which values are compared. nil stands for an absent part.
type versions struct {
	shown    any // the configuration itself
	redacted any // without what Talos itself knows to be secret
	plain    any // without the secret patches
	own      any // without any of the user's patches

	judge bool // free text is a secret only if it looks like one; otherwise it always is
}

// alone is a value that is the same in all versions: only its path and its form say what it is.
func alone(value any) versions {
	return versions{shown: value, redacted: value, plain: value, own: value}
}

// below returns what a function finds in each version.
func (v versions) below(find func(any) any) versions {
	return versions{shown: find(v.shown), redacted: find(v.redacted), plain: find(v.plain), own: find(v.own), judge: v.judge}
}

// hide makes a Secret of each value of a configuration that may be one.
func hide(in versions) map[string]any {
	tree, _ := hidden("", in, false).(map[string]any)
	return tree
}

// hidden makes a Secret of each value below a path that may be secret. inherited tells that a key above makes all values secret. Values
// that Slipway and Talos set are secret only by their name or form.
func hidden(path string, in versions, inherited bool) any {
	inherited = inherited || secrecy.Named(path) && !publicName.MatchString(path)
	if in.shown != nil && in.own == nil && freeText.MatchString(path) {
		if in.judge && !inherited {
			return judged(path, in.shown)
		}
		inherited = true
	}
	switch value := in.shown.(type) {
	case map[string]any:
		tree := make(map[string]any, len(value))
		for key, child := range value {
			if key == "$patch" {
				tree[key] = child // an instruction to Talos, and no value
				continue
			}
			tree[key] = hidden(path+"/"+key, in.below(func(tree any) any { return at(tree, key) }), inherited)
		}
		return tree
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = hidden(path+"/", in.below(func(list any) any { return item(list, i) }), inherited)
		}
		return list
	case string:
		if placeholder, ok := standIns[value]; ok {
			return placeholder
		}
		if value != "" && (inherited && !isSwitch(value) || in.maybeSecret(path, value)) {
			return Secret(value)
		}
		return strings.ReplaceAll(value, standInSchematic, "(schematic)")
	case nil:
		return nil
	default:
		if inherited && !isSwitch(fmt.Sprint(value)) || value != in.plain {
			return Secret(fmt.Sprint(value))
		}
		return value
	}
}

// isSwitch tells whether a value is true or false, which is no secret, however its key is called: anonymous-auth.
func isSwitch(value string) bool { return value == "true" || value == "false" }

// maybeSecret decides about one text by where it comes from, where it is and what it looks like.
func (v versions) maybeSecret(path, value string) bool {
	switch {
	case value != v.plain:
		return true
	case value == v.own:
		return secrecy.Like(value)
	case value != v.redacted:
		return true
	}
	return !v.judge && freeText.MatchString(path) || secrecy.Like(value) && !publicKey.MatchString(path)
}

// at returns the value at a path of a tree; nil if there is none.
func at(tree any, path ...string) any {
	for _, key := range path {
		mapping, _ := tree.(map[string]any)
		tree = mapping[key]
	}
	return tree
}

func item(list any, i int) any {
	if list, ok := list.([]any); ok && i < len(list) {
		return list[i]
	}
	return nil
}

var (
	// publicKey matches the path of a value that only looks like a secret.
	publicKey = regexp.MustCompile(`/(publicKey|topologyKey)$|/registerWithTaints//key$`)

	// publicName matches a path that only sounds like a secret: the keys of labels and annotations, which are the user's own, and names of
	// documents.
	publicName = regexp.MustCompile(`/(publicKey|topologyKey)$|/(registerWithTaints|matchExpressions|matchFields|tolerations)//key$|` +
		`/(nodeLabels|nodeAnnotations|matchLabels)/|^/[A-Z]\w+ [^/]*$`)
)
