package machineconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"gopkg.in/yaml.v3"
)

// Secret is a value of a configuration that is not for the eyes.
type Secret string

// Effective is a node's whole configuration to look at: what Talos generates, with our own patches and the user's on top.
// It is a tree of maps, lists, strings, numbers and booleans. At its top are machine and cluster, and the further
// documents under their kind and name, such as "VolumeConfig STATE".
//
// The cluster's own secrets are not in it: a sign stands in their place, for they are not known here. What the user has
// patched in is a Secret if it may be one. The text of our own patches is ours, and shown.
func Effective(c Cluster, n Node) (map[string]any, error) {
	full, err := assemble(c, n)
	if err != nil {
		return nil, err
	}
	shown, err := documents(full)
	if err != nil {
		return nil, err
	}
	if len(c.userPatches(n)) == 0 {
		return veil("", shown, shown, shown, false).(map[string]any), nil
	}
	redacted, err := documents(full.RedactSecrets("redacted")) // what Talos itself knows to be secret
	if err != nil {
		return nil, err
	}
	c.Patches, n.Patches = Patches{}, nil
	if full, err = assemble(c, n); err != nil {
		return nil, err
	}
	own, err := documents(full)
	if err != nil {
		return nil, err
	}
	return veil("", shown, redacted, own, false).(map[string]any), nil
}

// documents takes a configuration apart.
func documents(full config.Provider) (map[string]any, error) {
	text, err := full.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	for {
		var doc map[string]any
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		kind, ok := doc["kind"].(string)
		if !ok { // the one document that has none is the oldest and largest
			for key, value := range doc {
				all[key] = value
			}
			continue
		}
		name, _ := doc["name"].(string)
		delete(doc, "kind")
		delete(doc, "apiVersion")
		delete(doc, "name")
		all[strings.TrimSpace(kind+" "+name)] = doc
	}
}

// fromMachineSecrets stands for what only the machine secrets hold.
const fromMachineSecrets = "(from the machine secrets)"

// standIns are the values that assemble puts where secrets and the schematic belong, and what is shown for them.
var standIns = func() map[string]string {
	secrets := standInSecrets()
	shown := map[string]string{}
	for _, text := range []string{
		secrets.Cluster.ID, secrets.Cluster.Secret, secrets.Secrets.BootstrapToken, secrets.Secrets.SecretboxEncryptionSecret, secrets.TrustdInfo.Token,
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

// veil makes a Secret of each value that may be one. own is the configuration without the user's patches, of which only
// what is called a secret or looks like one is hidden; inherited tells that a key above said so.
func veil(path string, value, redacted, own any, inherited bool) any {
	inherited = inherited || secretKey.MatchString(path) || value != nil && own == nil && freeText.MatchString(path)
	switch value := value.(type) {
	case map[string]any:
		tree := make(map[string]any, len(value))
		for key, child := range value {
			tree[key] = veil(path+"/"+key, child, at(redacted, key), at(own, key), inherited)
		}
		return tree
	case []any:
		list := make([]any, len(value))
		for i, child := range value {
			list[i] = veil(path+"/", child, item(redacted, i), item(own, i), inherited)
		}
		return list
	case string:
		if sign, ok := standIns[value]; ok {
			return sign
		}
		theirs := value != own
		if value != "" && (inherited || secretText.MatchString(value) || theirs && (value != redacted || freeText.MatchString(path))) {
			return Secret(value)
		}
		return strings.ReplaceAll(value, standInSchematic, "(schematic)")
	case nil:
		return nil
	default:
		if inherited {
			return Secret(fmt.Sprint(value))
		}
		return value
	}
}

func at(tree any, key string) any {
	if tree, ok := tree.(map[string]any); ok {
		return tree[key]
	}
	return nil
}

func item(list any, i int) any {
	if list, ok := list.([]any); ok && i < len(list) {
		return list[i]
	}
	return nil
}

var (
	// secretKey is how the keys of secret values end. A Kubernetes name or a file's name may have such an end, too.
	secretKey = regexp.MustCompile(`(?i)(secret|token|passw\w*|passphrase|credentials?|private|preshared|psk|[/.-]auth|key)$`)

	// freeText are the places of text whose form Talos does not know: environments, files, manifests, static pods.
	freeText = regexp.MustCompile(`/(env|environment|content|contents|extraManifestHeaders|machine/pods)$`)

	// secretText is how secrets look: PEM, age and JSON web keys, a password in a URL or an argument, and long strings of
	// base64 or hexadecimal digits.
	secretText = regexp.MustCompile(`(?i)PRIVATE KEY-----|AGE-SECRET-KEY-|\beyJ[a-z0-9_-]{8,}|://[^/@\s]*:[^/@\s]*@|` +
		`(secret|token|passw\w*|key)=|^[a-z0-9+_-]{32,}={0,2}$|^[a-z0-9+/]{40,}={0,2}$`)
)
