// Package project writes the folder in which Pulumi runs in a lab. It has the project's Pulumi.yaml, which names the checkout as the
// place of the program, a Makefile that includes the checkout's, and a copy of each stack file. Pulumi writes its salt and the lab's
// secrets into the copies, and the compiled program beside them, and never into the checkout.
package project

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

// File is the name of the project file.
const File = "Pulumi.yaml"

// Keys of a stack file with which Pulumi encrypts the secrets.
var encryptionKeys = []string{"encryptionsalt", "encryptedkey", "secretsprovider"}

// Binary returns the program that a project file names in the place of sources to compile (runtime.options.binary); "" if it names none.
func Binary(checkout string) (string, error) {
	_, root, err := load(checkout)
	if err != nil {
		return "", err
	}
	if binary := value(value(value(root, "runtime"), "options"), "binary"); binary != nil {
		return binary.Value, nil
	}
	return "", nil
}

// load returns the project file of a checkout, and its mapping.
func load(checkout string) (document *yaml.Node, root *yaml.Node, err error) {
	path := filepath.Join(checkout, File)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("project file: %w", err)
	}
	document = &yaml.Node{}
	if err := yaml.Unmarshal(text, document); err != nil {
		return nil, nil, fmt.Errorf("project file %s: %w", path, err)
	}
	if root, err = mapping(document); err != nil {
		return nil, nil, fmt.Errorf("project file %s: %w", path, err)
	}
	return document, root, nil
}

// WriteFile writes the project file of a checkout into a folder, with the checkout as the place of the program. A buildTarget in the
// checkout becomes one in the folder.
func WriteFile(folder, checkout string) error {
	document, root, err := load(checkout)
	if err != nil {
		return err
	}
	place := checkout
	if main := value(root, "main"); main != nil {
		if place = main.Value; !filepath.IsAbs(place) {
			place = filepath.Join(checkout, place)
		}
	}
	set(root, "main", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: place})
	if target := value(value(value(root, "runtime"), "options"), "buildTarget"); target != nil && !filepath.IsAbs(target.Value) {
		target.Value = filepath.Join(folder, target.Value)
	}
	// So that targets which only run Pulumi, such as make drift, work in the folder as in the checkout.
	makefile := "-include " + filepath.Join(checkout, "Makefile") + "\n"
	if err := os.WriteFile(filepath.Join(folder, "Makefile"), []byte(makefile), 0o600); err != nil {
		return fmt.Errorf("project: %w", err)
	}
	return write(filepath.Join(folder, File), document)
}

// Copy is the copy of one stack file.
type Copy struct {
	Secrets  []string // keys of the secrets in the copy, sorted
	LeftOut  []string // keys of the secrets that are left out, because only their owner can decrypt them; sorted
	Salted   bool     // the copy has Pulumi's salt
	Original []byte   // the stack file that was copied
}

// CopyStack copies a stack file into a folder. The copy keeps the salt and the secrets of the copy before it, which the lab's
// passphrase decrypts. It leaves out the salt and the secrets of the stack file itself, which are encrypted with the user's.
func CopyStack(folder, path string) (Copy, error) {
	original, err := os.ReadFile(path)
	if err != nil {
		return Copy{}, fmt.Errorf("stack file: %w", err)
	}
	target := filepath.Join(folder, filepath.Base(path))
	before, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Copy{}, fmt.Errorf("stack file: %w", err)
	}
	document, c, err := merge(original, before)
	if err != nil {
		return Copy{}, fmt.Errorf("stack file %s: %w", path, err)
	}
	return c, write(target, document)
}

// merge returns a stack file with the encryption of another one.
func merge(original, encrypted []byte) (*yaml.Node, Copy, error) {
	c := Copy{Original: original}
	var document, before yaml.Node
	if err := errors.Join(yaml.Unmarshal(original, &document), yaml.Unmarshal(encrypted, &before)); err != nil {
		return nil, c, err
	}
	root, err := mapping(&document)
	if err != nil {
		return nil, c, err
	}
	old, err := mapping(&before)
	if err != nil {
		return nil, c, err
	}
	for _, key := range encryptionKeys {
		remove(root, key)
		if kept := value(old, key); kept != nil {
			set(root, key, kept)
			c.Salted = true
		}
	}
	secrets, theirs := secretsOf(value(old, "config")), secretsOf(value(root, "config"))
	for _, key := range slices.Sorted(maps.Keys(theirs)) {
		if secrets[key] == nil {
			remove(value(root, "config"), key)
			c.LeftOut = append(c.LeftOut, key)
		}
	}
	if len(secrets) > 0 && value(root, "config") == nil {
		set(root, "config", &yaml.Node{Kind: yaml.MappingNode})
	}
	for _, key := range slices.Sorted(maps.Keys(secrets)) {
		set(value(root, "config"), key, secrets[key])
		c.Secrets = append(c.Secrets, key)
	}
	return &document, c, nil
}

// secretsOf returns the encrypted values of a configuration by their keys.
func secretsOf(config *yaml.Node) map[string]*yaml.Node {
	secrets := map[string]*yaml.Node{}
	if config == nil || config.Kind != yaml.MappingNode {
		return secrets
	}
	for i := 0; i < len(config.Content); i += 2 {
		if entry := config.Content[i+1]; entry.Kind == yaml.MappingNode && len(entry.Content) == 2 && value(entry, "secure") != nil {
			secrets[config.Content[i].Value] = entry
		}
	}
	return secrets
}

// mapping returns the mapping of a document. An empty document becomes an empty mapping.
func mapping(document *yaml.Node) (*yaml.Node, error) {
	if len(document.Content) == 0 {
		*document = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		return root, nil
	}
	return nil, errors.New("is not a mapping")
}

// value returns the value of a key; nil if the node is no mapping or lacks the key.
func value(node *yaml.Node, key string) *yaml.Node {
	if at := index(node, key); at >= 0 {
		return node.Content[at+1]
	}
	return nil
}

func set(node *yaml.Node, key string, entry *yaml.Node) {
	if at := index(node, key); at >= 0 {
		node.Content[at+1] = entry
		return
	}
	node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, entry)
}

func remove(node *yaml.Node, key string) {
	if at := index(node, key); at >= 0 {
		node.Content = slices.Delete(node.Content, at, at+2)
	}
}

func index(node *yaml.Node, key string) int {
	if node == nil || node.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// write replaces a file as a whole, so that no reader sees a part of it.
func write(path string, document *yaml.Node) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
