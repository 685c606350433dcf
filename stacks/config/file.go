package config

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// fileKeys are the keys that Pulumi knows at the top of a stack file.
var fileKeys = []string{"config", "encryptedkey", "encryptionsalt", "environment", "secretsprovider"}

var fileForm = regexp.MustCompile(`^Pulumi\.([A-Za-z0-9._-]+)\.ya?ml$`)

// LoadFile loads a stack file, Pulumi.STACK.yaml, without Pulumi. Encrypted values are not decrypted: they count as set. Secrets
// may be missing, because they may be set later, where the stack is used. The error is cluster.Problems, unless the file cannot be
// read at all.
func LoadFile(path string) (*cluster.Cluster, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	return LoadText(path, text)
}

// LoadText loads the text of a stack file like LoadFile. Its path gives the stack's name as in ParseFile, and its folder is the
// checkout.
func LoadText(path string, text []byte) (*cluster.Cluster, error) {
	return loadText(os.DirFS(filepath.Dir(path)), path, text)
}

// LoadAmong loads the text of a stack file like LoadText, and returns the conflicts with the stacks that it names beside the stack. The
// error is that of the file alone.
func LoadAmong(path string, text []byte) (*cluster.Cluster, cluster.Problems, error) {
	return loadAmong(os.DirFS(filepath.Dir(path)), path, text)
}

// loadText is LoadText with any checkout.
func loadText(tree fs.FS, path string, text []byte) (*cluster.Cluster, error) {
	stack, conflicts, err := loadAmong(tree, path, text)
	if err != nil {
		return nil, err
	}
	if len(conflicts) > 0 {
		return nil, conflicts
	}
	return stack, nil
}

func loadAmong(tree fs.FS, path string, text []byte) (*cluster.Cluster, cluster.Problems, error) {
	stack, err := loadFile(tree, path, text)
	if err != nil {
		return nil, nil, err
	}
	var findings cluster.Findings
	meet(stack, tree, &findings)
	return stack, findings.All(), nil
}

// loadFile loads the text of a stack file without the stacks that it names.
func loadFile(tree fs.FS, path string, text []byte) (*cluster.Cluster, error) {
	source, read, err := parseSource(path, text)
	if err != nil {
		return nil, err
	}
	source.Tree = tree
	if source.Values == nil && len(read) == 0 {
		return nil, cluster.Problems{cluster.NewProblem("config", "check the stack with: pulumi preview",
			"is missing, and nothing here reads an environment")}
	}
	if source.Values == nil {
		return nil, read
	}
	stack, err := loadAlone(&source)
	if len(read) == 0 && err == nil {
		return stack, nil
	}
	return nil, joinProblems(read, cluster.ProblemsOf(err), ReadLines(text))
}

// ReadFile reads the raw configuration from a stack file.
func ReadFile(path string) (Source, error) {
	text, err := readText(path)
	if err != nil {
		return Source{}, err
	}
	return ParseFile(path, text)
}

// CheckText refuses a stack's file if anything is wrong with how its text is written. Pulumi does not report most of that: it reads
// 01121 as 593, and the first of two documents. folder is the project's, where a program runs. Without a file there, such as with
// --config-file, there is nothing to check. The configuration may be in an environment instead of the file.
func CheckText(folder, stack string) error {
	for _, ending := range []string{".yaml", ".yml"} {
		switch _, err := ReadFile(filepath.Join(folder, "Pulumi."+stack+ending)); {
		case errors.Is(err, os.ErrNotExist):
		default:
			return err
		}
	}
	return nil
}

// ParseFile reads the raw configuration from the text of a stack file. The path, Pulumi.STACK.yaml, gives the stack's name. If
// the file is not named so, the stack's name is the file's name.
func ParseFile(path string, text []byte) (Source, error) {
	source, read, err := parseSource(path, text)
	if err == nil && len(read) > 0 {
		err = fmt.Errorf("%s: %w", path, read)
	}
	if err != nil {
		return Source{}, err
	}
	return source, nil
}

func readText(path string) ([]byte, error) {
	if !fileForm.MatchString(filepath.Base(path)) {
		return nil, fmt.Errorf("%s: not a stack file's name; name it Pulumi.STACK.yaml", path)
	}
	return os.ReadFile(path)
}

// parseSource returns the readable values and the problems of the others. It returns an error if the text is not a stack file.
func parseSource(path string, text []byte) (Source, cluster.Problems, error) {
	base := filepath.Base(path)
	stack := strings.TrimSuffix(base, filepath.Ext(base))
	if name := fileForm.FindStringSubmatch(base); name != nil {
		stack = name[1]
	}
	values, read, err := readValues(text)
	if err != nil {
		return Source{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return Source{Stack: stack, Values: values, Tree: os.DirFS(filepath.Dir(path)), SecretsElsewhere: true}, read, nil
}

// joinProblems joins the problems of reading and of loading. It omits problems that follow from an unreadable value, and those
// that repeat a problem of the same line through an alias.
func joinProblems(read, loaded cluster.Problems, lines Lines) cluster.Problems {
	all := slices.Clone(read)
	unread, unreadNodes := map[string]bool{}, map[*yaml.Node]bool{}
	for _, problem := range read {
		path := steps(problem.Path)
		if len(path) > 0 && path[len(path)-1] == "secure" {
			path = path[:1] // a section is refused as a whole if a part of it is encrypted
		}
		unread[strings.Join(path, "\x00")] = true
		if _, node, rest := lines.walk(problem.Path); node != nil && len(rest) == 0 {
			unreadNodes[node] = true
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
		if _, node, rest := lines.walk(problem.Path); node != nil {
			one := fault{node, strings.Join(rest, "\x00"), problem.Problem, problem.Remedy}
			known = known || said[one] || unreadNodes[node] && len(rest) == 0
			said[one] = true
		}
		if !known {
			all = append(all, problem)
		}
	}
	return all
}

// readValues returns the values in a stack file's text, nil if it has no key config, and the problems with how they are written. It
// returns an error if the text is not a stack file.
func readValues(text []byte) (map[string]Value, cluster.Problems, error) {
	tree, read, err := parseYAML(text)
	if err != nil {
		return nil, nil, err
	}
	top, ok := tree.(*object)
	if !ok {
		return nil, nil, fmt.Errorf("is %s and must be a mapping; write its keys below the key config", kind(tree))
	}
	p, misspelt := cluster.Findings{}, false
	for _, problem := range read {
		problem.Path = underConfig(problem.Path)
		p.Include(problem)
	}
	for _, key := range top.keys {
		switch _, isText := top.values[key].(string); {
		case !slices.Contains(fileKeys, key):
			p.Include(cluster.NewProblem(key, cluster.OneOf(key, fileKeys), "is not a key of a stack file"))
			misspelt = misspelt || cluster.Suggest(key, fileKeys) == "config"
		case key != "config" && key != "environment" && !isText:
			p.Include(cluster.NewProblem(key, "remove it; Pulumi writes it", "is %s and must be text", kind(top.values[key])))
		}
	}
	config, ok := top.values["config"].(*object)
	if !ok {
		switch value, given := top.values["config"]; {
		case given:
			p.Include(cluster.NewProblem("config", "write the stack's keys below it", "is %s and must be a mapping", kind(value)))
		case !misspelt && top.values["environment"] == nil: // from which Pulumi takes the configuration, too
			p.Include(cluster.NewProblem("config", "add it, and write the stack's keys below it", "is missing"))
		}
		return nil, p.All(), nil
	}
	// With one of these keys, Pulumi encrypts values itself. Otherwise a service encrypts them.
	form := cipherForm{own: top.values["encryptionsalt"] != nil || top.values["encryptedkey"] != nil}
	values := map[string]Value{}
	for _, key := range config.keys {
		full := key
		if !strings.Contains(key, ":") {
			full = Namespace + ":" + key // Pulumi adds the namespace
		}
		path := strings.TrimPrefix(full, Namespace+":")
		if _, known := values[full]; known {
			p.Include(cluster.NewProblem(path, "keep one", "is given twice, with its namespace and without"))
			continue
		}
		form.check(&p, path, config.values[key])
		if values[full], err = fileValue(config.values[key]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return values, p.All(), nil
}

// underConfig converts a path in the file to a path in the stack's configuration.
func underConfig(path string) string {
	if below, ok := strings.CutPrefix(path, "config."); ok {
		return strings.TrimPrefix(below, Namespace+":")
	}
	return path
}

// fileValue converts a value of the file to the form in which the engine passes it.
func fileValue(tree any) (Value, error) {
	if isEncrypted(tree) {
		return Value{Secret: true, Encrypted: true}, nil
	}
	switch scalar := tree.(type) {
	case nil:
		return Value{}, nil
	case string:
		return Value{Text: scalar}, nil
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return Value{}, err
	}
	return Value{Text: string(text), Secret: holdsEncrypted(tree)}, nil
}

// isEncrypted reports whether the tree is an encrypted value, by Pulumi's rule: a mapping with the only key "secure", which is text.
func isEncrypted(tree any) bool {
	_, ok := ciphertext(tree)
	return ok
}

func ciphertext(tree any) (string, bool) {
	o, ok := tree.(*object)
	if !ok || len(o.keys) != 1 {
		return "", false
	}
	text, ok := o.values["secure"].(string)
	return text, ok
}

// cipherForm is the form of encrypted values in a file.
type cipherForm struct{ own bool }

const (
	nonceBytes = 12 // AES-GCM, which Pulumi encrypts with
	tagBytes   = 16
)

// check reports values that are marked as encrypted and are not. No message contains them.
func (f cipherForm) check(p *cluster.Findings, path string, tree any) {
	switch t := tree.(type) {
	case *object:
		if text, ok := ciphertext(t); ok {
			if !f.fits(text) {
				p.Include(cluster.NewProblem(path+".secure", "revoke what it holds, and set it with: pulumi config set --secret",
					"is not a ciphertext of Pulumi's"))
			}
			return
		}
		for _, key := range t.keys {
			f.check(p, step(path, key), t.values[key])
		}
	case []any:
		for i, item := range t {
			f.check(p, cluster.ItemPath(path, i), item)
		}
	}
}

// fits reports whether a text is v1:NONCE:CIPHERTEXT, or the bare ciphertext of a service.
func (f cipherForm) fits(text string) bool {
	version, rest, versioned := strings.Cut(text, ":")
	if !versioned {
		encrypted, err := base64.StdEncoding.DecodeString(text)
		return !f.own && err == nil && len(encrypted) > nonceBytes+tagBytes
	}
	nonce, encrypted, _ := strings.Cut(rest, ":")
	iv, err := base64.StdEncoding.DecodeString(nonce)
	if err != nil || version != "v1" || len(iv) != nonceBytes {
		return false
	}
	box, err := base64.StdEncoding.DecodeString(encrypted)
	return err == nil && len(box) >= tagBytes
}

// holdsEncrypted reports whether any part of the tree is encrypted.
func holdsEncrypted(tree any) bool {
	switch t := tree.(type) {
	case *object:
		if isEncrypted(t) {
			return true
		}
		for _, value := range t.values {
			if holdsEncrypted(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(t, holdsEncrypted)
	}
	return false
}
