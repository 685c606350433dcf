package secrecy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// configBlock is the key of the chart of CoreDNS for the options of a plugin, and inBlock an option that is a secret: of tsig and azure,
// etcd, and route53. A {$NAME} is an environment variable.
const configBlock = "configBlock"

var inBlock = regexp.MustCompile(`(?m)^\s*(secret|password|credentials|aws_access_key)[ \t]+[^{\s]`)

// noName is a text that names no Secret: names have neither capitals nor underscores. With $, :, /, < or #, it may refer to one, as
// op://vault/item/FIELD does.
var noName = regexp.MustCompile(`^[^$\s{:/<#]*[A-Z_=][^\s{:/<#]*$`)

// InJSON returns the dotted paths of the values in a JSON document that look like secrets, by their text or by the name of their key,
// sorted. It serves values of charts, in which keys that end in secret or key name Secrets, labels and taints, if their texts may be
// names. A reference to an environment variable, $(NAME), is none.
func InJSON(document []byte) []string {
	var tree any
	if json.Unmarshal(document, &tree) != nil {
		return nil
	}
	var paths []string
	var visit func(path, key string, secret bool, value any)
	visit = func(path, key string, secret bool, value any) {
		switch value := value.(type) {
		case map[string]any:
			named, _ := value["name"].(string) // of an environment variable, whose value is beside it
			for name, child := range value {
				at := name
				if path != "" {
					at = path + "." + name
				}
				contents := value["kind"] == "Secret" && (name == "data" || name == "stringData")
				visit(at, name, secret || contents || name == "value" && (holder.MatchString(named) || holder.MatchString(key)), child)
			}
		case []any:
			for i, child := range value {
				visit(fmt.Sprintf("%s[%d]", path, i), key, secret, child)
			}
		case string:
			itself := strings.HasSuffix(strings.ToLower(key), "secret") && len(value) >= 8 && noName.MatchString(value)
			secret = secret || itself || holder.MatchString(key) || Like(value) && key != "digest" || secretManifest.MatchString(value) ||
				key == configBlock && inBlock.MatchString(value)
			if secret && value != "" && !strings.HasPrefix(value, "$(") {
				paths = append(paths, path)
			}
		}
	}
	visit("", "", false, tree)
	slices.Sort(paths)
	return paths
}
