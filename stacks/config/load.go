package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

var secretType = reflect.TypeFor[cluster.Secret]()

// Load decodes a stack's configuration strictly, reads from the tree what Flux owns, fills in the defaults and checks the whole, also
// against the stacks that it names. The error joins all problems, each a *cluster.Problem. With an error, the Cluster is nil.
func Load(source Source) (*cluster.Cluster, error) {
	c, err := loadAlone(&source)
	if err != nil {
		return nil, err
	}
	var findings cluster.Findings
	meet(c, source.Tree, &findings)
	if err := findings.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// loadAlone is Load without the other stacks.
func loadAlone(source *Source) (*cluster.Cluster, error) {
	if source.Tree == nil {
		source.Tree = empty{}
	}
	c, err := load(*source)
	if err != nil {
		return nil, err
	}
	return loadOwned(*source, c)
}

// load is Load without the tree.
func load(source Source) (*cluster.Cluster, error) {
	c := cluster.New(source.Stack)
	d := &decoder{}

	meant := d.loadUnknownKeys(source)
	model := reflect.ValueOf(c).Elem()
	for field := range cluster.Keys(model.Type()) {
		name := keyOf(field)
		value, given := source.Values[Namespace+":"+name]
		into := model.FieldByIndex(field.Index)
		switch {
		case field.Type == secretType:
			d.loadSecret(name, value, given, into)
		case given:
			d.loadSection(name, value, into)
		case isRequired(field):
			d.missing(name, meant[name])
		}
	}
	d.loadSecretPatches(&c.Secrets)

	c.Complete(&d.Findings)
	if !source.SecretsElsewhere && !d.Unusable("gitops.url") {
		for _, name := range c.MissingSecrets() {
			d.Found(name, fmt.Sprintf("set it with: pulumi config set --secret %s:%s", Namespace, name), "is missing")
		}
	}
	if d.Len() == 0 { // machine configurations are rendered only for a cluster without problems
		d.checkPatches(c)
		chart.CheckUserValues(c, &d.Findings)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// checkPatches reports problems of the machine configurations with the user's patches.
func (d *decoder) checkPatches(c *cluster.Cluster) {
	for _, violation := range machineconfig.CheckPatches(c) {
		path := violation.Patch
		if violation.Part != "" {
			path = cluster.KeyPath(path, violation.Part)
		}
		d.Add(path, violation.Remedy, violation.Problem)
	}
}

// loadSecretPatches decodes the secret patches. Problems contain nothing of their text.
func (d *decoder) loadSecretPatches(secrets *cluster.Secrets) {
	const path = cluster.SecretPatchesKey
	text := secrets.TalosSecretPatches.Reveal()
	if text == "" {
		return
	}
	tree, problems, err := parseYAML([]byte(text))
	if err != nil || len(problems) > 0 {
		d.Unreadable(path, "write YAML of the same form as talos.patches", "is not YAML that can be read")
		return
	}
	hidden := decoder{}
	hidden.decode(path, tree, reflect.ValueOf(&secrets.SecretPatches.Patches).Elem())
	for _, problem := range hidden.All() {
		d.Unreadable(problem.Path, "write it in the same form as talos.patches", "cannot be read as a patch")
	}
}

func (d *decoder) loadSection(name string, value Value, into reflect.Value) {
	switch {
	case value.Secret:
		// Its values would be secret wherever they are used, even in names and previews.
		d.Unreadable(name, "write it in plain text", "is encrypted, or a part of it is, and holds no secret")
		return
	case value.Text == "":
		d.Unreadable(name, "give it a value, or remove the key", "has no value")
		return
	}
	tree, err := parseTree(value.Text)
	if err != nil {
		tree = value.Text // a scalar is passed without JSON's quotes
	}
	d.decode(name, tree, into)
}

func (d *decoder) loadSecret(name string, value Value, given bool, into reflect.Value) {
	switch {
	case !given:
	case !value.Secret:
		d.Unreadable(name, fmt.Sprintf("revoke it, and set a new one with: pulumi config set --secret %s:%s", Namespace, name),
			"is a secret in plain text")
	case value.Encrypted:
		into.Set(reflect.ValueOf(cluster.EncryptedSecret()))
	case value.Text == "":
		d.Unreadable(name, "give it a value, or remove the key", "is empty")
	default:
		into.Set(reflect.ValueOf(cluster.NewSecret(value.Text)))
	}
}

// loadUnknownKeys reports every key that neither the model nor Pulumi knows. It returns the known names that were probably meant.
func (d *decoder) loadUnknownKeys(source Source) map[string]bool {
	var own, names []string
	for _, key := range slices.Sorted(maps.Keys(source.Values)) {
		switch namespace, name, _ := strings.Cut(key, ":"); namespace {
		case Namespace:
			own = append(own, name)
		case "pulumi":
		default:
			d.Add(key, "remove it: providers are configured from the keys of "+Namespace, "is not a key of "+Namespace)
		}
	}
	for _, key := range Keys() {
		names = append(names, strings.TrimPrefix(key, Namespace+":"))
	}
	return d.unknownKeys("", own, names)
}
