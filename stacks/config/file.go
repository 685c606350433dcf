package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
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

// ParseFile parses the text of a stack file, without Pulumi. Encrypted values are not decrypted: they count as set. Its path,
// Pulumi.STACK.yaml, gives the stack's name, and its folder is the checkout. If the file is not named so, the stack's name is the file's
// name. It returns an error if the text is not a stack file. Load returns all other problems.
func ParseFile(path string, text []byte) (Source, error) {
	return parseIn(Checkout(filepath.Dir(path)), path, text)
}

// parseIn is ParseFile for a file of a checkout.
func parseIn(checkout fs.FS, path string, text []byte) (Source, error) {
	base := filepath.Base(path)
	source := Source{Stack: strings.TrimSuffix(base, filepath.Ext(base)), Tree: checkout, SecretsElsewhere: true}
	if name := fileForm.FindStringSubmatch(base); name != nil {
		source.Stack = name[1]
	}
	if err := source.parse(text); err != nil {
		return Source{}, fmt.Errorf("%s: %w", path, err)
	}
	return source, nil
}

// CheckText refuses a stack's file if anything is wrong with how its text is written. Pulumi does not report most of that: it reads
// 01121 as 593, and the first of two documents. folder is the project's, where a program runs. Without a file there, such as with
// --config-file, there is nothing to check. The configuration may be in an environment instead of the file.
func CheckText(folder, stack string) error {
	file, text, err := ReadFile(Checkout(folder), stack)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	path := filepath.Join(folder, file)
	source, err := ParseFile(path, text)
	if err == nil && len(source.written) > 0 {
		err = fmt.Errorf("%s: %w", path, source.written)
	}
	return err
}

// ReadFile returns the name and the text of a stack's file. Without a file, the error is fs.ErrNotExist.
func ReadFile(checkout fs.FS, stack string) (file string, text []byte, err error) {
	for _, ending := range []string{".yaml", ".yml"} {
		file = "Pulumi." + stack + ending
		if text, err = fs.ReadFile(checkout, file); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, text, err
}

// parse reads the values in a stack file's text, none if it has no key config, and the problems with how they are written. It returns an
// error if the text is not a stack file.
func (s *Source) parse(text []byte) error {
	tree, read, err := parseYAML(text)
	if err != nil {
		return err
	}
	var ok bool
	if s.file, ok = tree.(*object); !ok {
		return fmt.Errorf("is %s and must be a mapping; write its keys below the key config", kind(tree))
	}
	var p cluster.Findings
	for _, problem := range read {
		problem.Path = underConfig(problem.Path)
	}
	p.Include(read...)
	if config, outside := configOf(s.file, &p); config != nil || len(outside) > 0 {
		s.Values = valuesOf(s.file, config, outside, projectOf(s.Tree), &p)
	}
	s.written = p.All()
	return nil
}

// configOf checks the keys of a file. It returns the mapping with the stack's keys, nil if it has none, and the stack's keys that stand
// outside of it.
func configOf(file *object, p *cluster.Findings) (config *object, outside []string) {
	misspelt := false
	for _, key := range file.keys {
		switch _, isText := file.get(key).(string); {
		case slices.Contains(Keys(), Namespace+":"+strings.TrimPrefix(key, Namespace+":")):
			outside = append(outside, key)
		case !slices.Contains(fileKeys, key):
			p.Found(key, cluster.OneOf(key, fileKeys), "is not a key of a stack file")
			misspelt = misspelt || cluster.Suggest(key, fileKeys) == "config"
		case key != "config" && key != "environment" && !isText:
			p.Found(key, "remove it; Pulumi writes it", "is %s and must be text", kind(file.get(key)))
		}
	}
	config, ok := file.get("config").(*object)
	_, given := file.values["config"]
	if len(outside) > 0 {
		p.Found(outside[0], "write it below config, with two spaces before each of its lines"+alike(len(outside)-1),
			"is a key of %s, and stands outside of config", Namespace)
	}
	switch {
	case ok, !given && len(outside) > 0:
	case given:
		p.Found("config", "write the stack's keys below it", "is %s and must be a mapping", kind(file.get("config")))
	case !misspelt && file.get("environment") == nil: // from which Pulumi takes the configuration, too
		p.Found("config", "add it, and write the stack's keys below it", "is missing")
	}
	return config, outside
}

// alike says of how many more keys the same is true.
func alike(others int) string {
	switch others {
	case 0:
		return ""
	case 1:
		return ", and the other key likewise"
	}
	return fmt.Sprintf(", and the %d other keys likewise", others)
}

// projectOf returns the name of the project in a checkout; Namespace without one.
func projectOf(checkout fs.FS) string {
	project := struct{ Name string }{Namespace}
	if text, err := fs.ReadFile(checkout, "Pulumi.yaml"); err == nil {
		_ = yaml.Unmarshal(text, &project) // what is wrong with it, Pulumi says
	}
	return project.Name
}

// valuesOf returns the stack's values by their full keys. Misplaced ones are read all the same, so that they are not missing.
func valuesOf(file, config *object, outside []string, project string, p *cluster.Findings) map[string]Value {
	// With one of these keys, Pulumi encrypts values itself. Otherwise a service encrypts them.
	form := cipherForm{own: file.get("encryptionsalt") != nil || file.get("encryptedkey") != nil}
	values := map[string]Value{}
	if config != nil {
		for _, key := range config.keys {
			if below, is := config.get(key).(*object); is && key == Namespace {
				p.Found(key, "write each key below it as "+Namespace+":KEY, such as "+Namespace+":cluster, directly below config",
					"holds keys, and is none itself")
				for _, one := range below.keys {
					addValue(values, one, below.get(one), &form, p)
				}
				continue
			}
			if project != Namespace && !strings.Contains(key, ":") {
				p.Found(key, "write "+Namespace+":"+key, "is a key of the project %s to Pulumi", project)
			}
			addValue(values, key, config.get(key), &form, p)
		}
	}
	for _, key := range outside {
		addValue(values, key, file.get(key), &form, p)
	}
	if form.lost != "" {
		p.Found(form.lost+".secure", "write back the line encryptionsalt, or encryptedkey, that the file had when the "+
			"value was set, or set all secrets anew with: pulumi config set --secret",
			"cannot be decrypted: the file does not have what it is encrypted with")
	}
	return values
}

// addValue adds the value of a key, which may be given once. Pulumi adds the project's name to a key without a namespace.
func addValue(values map[string]Value, key string, tree any, form *cipherForm, p *cluster.Findings) {
	if !strings.Contains(key, ":") {
		key = Namespace + ":" + key
	}
	path := strings.TrimPrefix(key, Namespace+":")
	if _, known := values[key]; known {
		p.Found(path, "keep one", "is given twice, with its namespace and without")
		return
	}
	encrypted := encryptedIn(path, tree)
	form.check(p, encrypted)
	_, whole := ciphertext(tree)
	values[key] = Value{Tree: tree, Secret: len(encrypted) > 0, Encrypted: whole}
}

// underConfig converts a path in the file to a path in the stack's configuration.
func underConfig(path string) string {
	if below, ok := strings.CutPrefix(path, "config."); ok {
		return strings.TrimPrefix(below, Namespace+":")
	}
	return path
}

// ciphertext returns the text of an encrypted value, by Pulumi's rule: a mapping with the only key "secure", which is text.
func ciphertext(tree any) (string, bool) {
	o, ok := tree.(*object)
	if !ok || len(o.keys) != 1 {
		return "", false
	}
	text, ok := o.get("secure").(string)
	return text, ok
}

// Ciphertexts returns how a stack file says that its values are encrypted ("": not), and the ciphertexts by their keys.
func (s Source) Ciphertexts() (with string, ciphertexts map[string]string) {
	for _, key := range []string{"encryptionsalt", "encryptedkey", "secretsprovider"} {
		text, _ := s.file.get(key).(string)
		with += text
	}
	ciphertexts = map[string]string{}
	for key, value := range s.Values {
		if text, is := ciphertext(value.Tree); is {
			ciphertexts[strings.TrimPrefix(key, Namespace+":")] = text
		}
	}
	return with, ciphertexts
}

// cipherForm is the form of encrypted values in a file.
type cipherForm struct {
	own  bool   // the file says how Pulumi itself encrypts
	lost string // path of the first value that is encrypted so in a file that does not say how; "" if there is none
}

const (
	nonceBytes = 12 // AES-GCM, which Pulumi encrypts with
	tagBytes   = 16
)

// check reports values that are marked as encrypted and are not. No message contains them.
func (f *cipherForm) check(p *cluster.Findings, encrypted []cipher) {
	for _, one := range encrypted {
		switch {
		case !f.fits(one.text):
			p.Found(one.path+".secure", "revoke what it holds, and set it with: pulumi config set --secret", "is not a ciphertext of Pulumi's")
		case strings.Contains(one.text, ":") && !f.own:
			f.lost = cmp.Or(f.lost, one.path)
		}
	}
}

// fits reports whether a text is v1:NONCE:CIPHERTEXT, or the bare ciphertext of a service.
func (f *cipherForm) fits(text string) bool {
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

// cipher is an encrypted part of a value.
type cipher struct{ path, text string }

// encryptedIn returns the encrypted parts of a tree.
func encryptedIn(path string, tree any) (all []cipher) {
	switch t := tree.(type) {
	case *object:
		if text, is := ciphertext(t); is {
			return []cipher{{path, text}}
		}
		for _, key := range t.keys {
			all = append(all, encryptedIn(step(path, key), t.get(key))...)
		}
	case []item:
		for i, one := range t {
			all = append(all, encryptedIn(cluster.ItemPath(path, i), one.value)...)
		}
	}
	return all
}
