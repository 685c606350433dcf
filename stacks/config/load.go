package config

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

var secretType = reflect.TypeFor[cluster.Secret]()

// Load decodes a stack's configuration strictly, reads from the checkout what Flux owns, fills in the defaults and checks the whole, also
// against the stacks that it names. The error joins all problems, each a *cluster.Problem. With an error, the Cluster is nil.
func Load(source Source) (*cluster.Cluster, error) {
	c, conflicts, err := LoadAmong(source)
	switch {
	case err != nil:
		return nil, err
	case len(conflicts) > 0:
		return nil, conflicts
	}
	return c, nil
}

// LoadAmong loads a stack like Load, and returns the conflicts with the stacks that it names beside the stack. The error is that of the
// stack alone.
func LoadAmong(source Source) (*cluster.Cluster, cluster.Problems, error) {
	c, err := loadAlone(source)
	if err != nil {
		return nil, nil, err
	}
	var findings cluster.Findings
	meet(c, source.Tree, &findings)
	return c, findings.All(), nil
}

// loadAlone is Load without the other stacks.
func loadAlone(source Source) (*cluster.Cluster, error) {
	if source.Tree == nil {
		source.Tree = embed.FS{} // without files
	}
	if source.file != nil && source.Values == nil {
		if len(source.written) > 0 {
			return nil, source.written
		}
		return nil, cluster.Problems{cluster.NewProblem("config", "check the stack with: pulumi preview",
			"is missing, and nothing here reads an environment")}
	}
	c, err := load(source)
	if err == nil && len(source.written) == 0 {
		return c, nil
	}
	return nil, source.join(cluster.ProblemsOf(err))
}

// join joins the problems with how the file is written and those of loading. It omits problems that follow from an unreadable value, or
// that repeat a problem of the same line through an alias.
func (s Source) join(loaded cluster.Problems) cluster.Problems {
	all := slices.Clone(s.written)
	unread, unreadNodes := map[string]bool{}, map[*yaml.Node]bool{}
	for _, problem := range s.written {
		path := steps(problem.Path)
		if len(path) > 0 && path[len(path)-1] == "secure" {
			path = path[:1] // a section is refused as a whole if a part of it is encrypted
		}
		unread[strings.Join(path, "\x00")] = true
		if found, rest := s.walk(problem.Path); found.node != nil && len(rest) == 0 {
			unreadNodes[found.node] = true
		}
	}
	type fault struct {
		node                  *yaml.Node
		rest, problem, remedy string
	}
	said := map[fault]bool{}
	for _, problem := range loaded {
		path := steps(problem.Path)
		known := false
		for i := range path {
			known = known || unread[strings.Join(path[:i+1], "\x00")]
		}
		if found, rest := s.walk(problem.Path); found.node != nil {
			one := fault{found.node, strings.Join(rest, "\x00"), problem.Problem, problem.Remedy}
			known = known || said[one] || unreadNodes[found.node] && len(rest) == 0
			said[one] = true
		}
		if !known {
			all = append(all, problem)
		}
	}
	return all
}

// load decodes the values, over what Git declares of the components that Flux owns, and checks the whole.
func load(source Source) (*cluster.Cluster, error) {
	if problem := wrongStack(source); problem != nil {
		return nil, cluster.Problems{problem}
	}
	c, d := declare(source, nil)
	if d.Len() > 0 {
		return nil, d.All()
	}
	git := readOwned(source, c, &d.Findings)
	if d.Len() > 0 {
		return nil, d.All()
	}
	if len(git.layer) > 0 {
		c, d = declare(source, git.layer)
	}
	if d.Len() == 0 { // machine configurations are rendered only for a cluster without problems
		c.Git = git.declared
		d.checkPatches(c)
		chart.CheckUserValues(c, &d.Findings)
	}
	if d.Len() > 0 {
		return nil, git.placed(d.All())
	}
	return c, nil
}

// wrongStack returns the problem of a stack that declares nothing, beside files that do: its name is not that of its file. `pulumi new`
// proposes dev, and writes the secrets into Pulumi.dev.yaml.
func wrongStack(source Source) *cluster.Problem {
	secrets := map[string]bool{}
	for field := range cluster.Keys(reflect.TypeFor[cluster.Cluster]()) {
		secrets[Namespace+":"+keyOf(field)] = field.Type == secretType
	}
	for key := range source.Values {
		if strings.HasPrefix(key, Namespace+":") && !secrets[key] {
			return nil
		}
	}
	var others []string
	files, _ := fs.Glob(source.Tree, "Pulumi.*.y*ml") // the pattern is valid
	for _, file := range files {
		text, err := fs.ReadFile(source.Tree, file)
		if stack := strings.TrimSuffix(strings.TrimPrefix(file, "Pulumi."), path.Ext(file)); err == nil && stack != source.Stack &&
			strings.Contains(string(text), Namespace+":cluster:") {
			others = append(others, "--stack "+stack)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return cluster.NewProblem("cluster", "a stack has the name of its file: use "+strings.Join(others, " or "),
		"is missing, and so is every other section")
}

// declare decodes the values, each over what the layer has of its section, and completes the cluster.
func declare(source Source, layer map[string]*object) (*cluster.Cluster, *decoder) {
	c := cluster.New(source.Stack)
	d := &decoder{given: map[string]bool{}}

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
			d.loadSection(name, value, layer[name], into)
		case isRequired(field):
			d.missing(name, "", meant[name])
		}
	}
	d.loadSecretPatches(&c.Secrets)

	c.Given = d.given
	c.Complete(&d.Findings)
	if !source.SecretsElsewhere && !d.Unusable("gitops.url") {
		for _, name := range c.MissingSecrets() {
			d.Found(name, fmt.Sprintf("set it with: pulumi config set --secret %s:%s", Namespace, name), "is missing")
		}
	}
	return c, d
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

func (d *decoder) loadSection(name string, value Value, below *object, into reflect.Value) {
	switch {
	case value.Secret:
		// Its values would be secret wherever they are used, even in names and previews.
		d.refuseEncrypted(name, value.Tree)
		return
	case value.Tree == nil, value.Tree == "":
		d.Unreadable(name, "give it a value, or remove the key", "has no value")
		return
	}
	tree, problems := value.parsed(name)
	d.Include(problems...)
	if own, is := tree.(*object); is {
		tree = own.over(below)
	}
	d.decode(name, tree, into)
}

// refuseEncrypted reports that a section is encrypted, or a part of it. Where the file says which part, the problem is there.
func (d *decoder) refuseEncrypted(section string, tree any) {
	path := section
	if encrypted := encryptedIn(section, tree); len(encrypted) > 0 {
		path = encrypted[0].path
	}
	keys := steps(path)
	key := keys[len(keys)-1]
	remedy := "remove it, or write it in plain text if it is no secret: each secret has a key of its own, see docs/configuration.md"
	if slices.Contains(secretKeys, key) {
		remedy = fmt.Sprintf("remove it here, and set it with: pulumi config set --secret %s:%s", Namespace, key)
	}
	d.Discard(section)
	d.Add(path, remedy, "is encrypted, and "+section+" holds no secrets")
}

func (d *decoder) loadSecret(name string, value Value, given bool, into reflect.Value) {
	switch {
	case !given:
	case !value.Secret:
		d.Unreadable(name, fmt.Sprintf("revoke it, and set a new one with: pulumi config set --secret %s:%s", Namespace, name),
			"is a secret in plain text")
	case value.Encrypted:
		into.Set(reflect.ValueOf(cluster.EncryptedSecret()))
	case value.Text() == "":
		d.Unreadable(name, "give it a value, or remove the key", "is empty")
	default:
		into.Set(reflect.ValueOf(cluster.NewSecret(value.Text())))
	}
}

// loadUnknownKeys reports every key that neither the model nor Pulumi knows. It returns the known names that were probably meant.
func (d *decoder) loadUnknownKeys(source Source) map[string]bool {
	var own []string
	for _, key := range slices.Sorted(maps.Keys(source.Values)) {
		switch namespace, name, _ := strings.Cut(key, ":"); namespace {
		case Namespace:
			own = append(own, name)
		case "pulumi":
		default:
			remedy, meant := "remove it: providers are configured from the keys of "+Namespace, Namespace+":"+name
			if slices.Contains(Keys(), meant) {
				remedy = "write it as " + meant
			}
			d.Add(key, remedy, "is not a key of "+Namespace)
		}
	}
	return d.unknownKeys("", own, keysOf(reflect.TypeFor[cluster.Cluster]()))
}
