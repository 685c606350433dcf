// Package leaks searches places for secrets. It knows the encodings in which a secret may be there: plain text, JSON, base64 at every
// position within a group of three bytes, and URL encoding. A place that cannot be searched is an error, not a place without secrets.
package leaks

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shortest is the length of the shortest secret that can be told from other text.
const shortest = 12

// Secrets are the secrets to search for. The zero value has none.
//
// A text is searched for all of them in one pass: thousands of forms in tens of thousands of files would take minutes otherwise.
type Secrets struct {
	forms  map[string]map[string][]byte // by the secret's name, and then by encoding
	begins map[uint64][]form            // by the first eight bytes
	maybe  [1 << 16]bool                // by the hash of the first eight bytes: whether a form may begin so
}

// form is one encoding of a secret.
type form struct {
	secret, encoding string
	text             []byte
}

// Leak is a secret that was found.
type Leak struct {
	Secret   string // name
	Encoding string
	Place    string
}

func (l Leak) String() string {
	return fmt.Sprintf("%s has the secret %s in %s", l.Place, l.Secret, l.Encoding)
}

// Add adds a secret. The name is what a leak is reported with.
func (s *Secrets) Add(name, value string) error {
	if len(value) < shortest {
		return fmt.Errorf("%s: %d bytes are too few to be told from other text", name, len(value))
	}
	if s.forms == nil {
		s.forms, s.begins = map[string]map[string][]byte{}, map[uint64][]form{}
	}
	forms := map[string][]byte{}
	for encoding, text := range Forms(value) {
		forms[encoding] = []byte(text)
		begin := binary.LittleEndian.Uint64(forms[encoding])
		s.begins[begin] = append(s.begins[begin], form{name, encoding, forms[encoding]})
		s.maybe[hash(begin)] = true
	}
	s.forms[name] = forms
	return nil
}

// hash spreads the first bytes of forms, which are much alike.
func hash(begin uint64) uint64 { return begin * 0x9e3779b97f4a7c15 >> 48 }

// Names returns the names of the secrets, sorted.
func (s *Secrets) Names() []string { return slices.Sorted(maps.Keys(s.forms)) }

// Encodings returns the number of different encodings.
func (s *Secrets) Encodings() int {
	all := map[string]bool{}
	for _, forms := range s.forms {
		for encoding := range forms {
			all[encoding] = true
		}
	}
	return len(all)
}

// Forms returns the encodings of a value, by name.
func Forms(value string) map[string]string {
	forms := map[string]string{
		"plain text": value, "URL encoding of a query": url.QueryEscape(value), "URL encoding of a path": url.PathEscape(value),
		"hexadecimal": hex.EncodeToString([]byte(value)),
	}
	quoted, _ := json.Marshal(value) // a string
	inner := string(quoted[1 : len(quoted)-1])
	forms["JSON"] = inner
	twice, _ := json.Marshal(inner)
	forms["JSON in JSON"] = string(twice[1 : len(twice)-1])
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 for URLs": base64.RawURLEncoding} {
		for before := range 3 {
			forms[fmt.Sprintf("%s after %d bytes", name, before)] = within(encoding, value, before)
		}
	}
	return forms
}

// within returns what a value looks like in base64 after a number of other bytes, without the characters that depend on its neighbours.
func within(encoding *base64.Encoding, value string, before int) string {
	text := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	first := (before*8 + 5) / 6           // characters with a bit of the bytes before
	last := (before + len(value)) * 8 / 6 // the one after has bits of the bytes after
	return text[first:min(last, len(text))]
}

// Search searches a text, and returns each secret that is in it once, sorted.
func (s *Secrets) Search(place string, text []byte) []Leak {
	found := map[string]string{} // encoding by secret, the first one in the alphabet
	for rest := text; len(rest) >= 8; rest = rest[1:] {
		begin := binary.LittleEndian.Uint64(rest)
		if !s.maybe[hash(begin)] {
			continue
		}
		for _, one := range s.begins[begin] {
			if known, is := found[one.secret]; bytes.HasPrefix(rest, one.text) && (!is || one.encoding < known) {
				found[one.secret] = one.encoding
			}
		}
	}
	var leaks []Leak
	for _, name := range slices.Sorted(maps.Keys(found)) {
		leaks = append(leaks, Leak{Secret: name, Encoding: found[name], Place: place})
	}
	return leaks
}

// Files searches all regular files below a folder, and what is compressed in them with gzip. It returns their number. A folder without a
// file is an error: the search would be of no use. So is a file that cannot be read, unless it was deleted meanwhile.
func (s *Secrets) Files(folder string) (leaks []Leak, files int, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreDeleted(err, path, folder)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return ignoreDeleted(err, path, folder)
		}
		files++
		leaks = append(leaks, s.Search(path, text)...)
		leaks = append(leaks, s.Search(path, uncompressed(text))...)
		return nil
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s: has no file to search", folder)
	}
	return leaks, files, err
}

// uncompressed returns what is in a file of gzip; nil if the file is none. A program that still writes the file, or was killed, has left a
// part of it, which is returned as far as it goes.
func uncompressed(file []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(reader)
	return text
}

func ignoreDeleted(err error, path, folder string) error {
	if errors.Is(err, fs.ErrNotExist) && path != folder {
		return nil
	}
	return err
}

// Process is a running process of whom everybody may read the arguments, and its owner the environment.
type Process struct {
	ID        string
	Name      string   // of the program
	Arguments []string // with the program
	Variables []string // NAME=VALUE
}

// Processes returns the processes in proc, such as /proc, that are in a namespace of pids, such as pid:[4026531836]. Those that end
// meanwhile are left out.
func Processes(proc, namespace string) ([]Process, error) {
	folders, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, folder := range folders {
		if in, err := os.Readlink(filepath.Join(folder, "ns", "pid")); err != nil || in != namespace {
			continue // it has ended, or belongs to somebody else
		}
		arguments, err1 := os.ReadFile(filepath.Join(folder, "cmdline"))
		variables, err2 := os.ReadFile(filepath.Join(folder, "environ"))
		if err := errors.Join(err1, err2); err != nil || len(arguments) == 0 {
			continue // it is ending
		}
		one := Process{ID: filepath.Base(folder), Arguments: split(arguments), Variables: split(variables)}
		one.Name = filepath.Base(one.Arguments[0])
		found = append(found, one)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: has no process of %s", proc, namespace)
	}
	return found, nil
}

func split(text []byte) []string {
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// Process searches the arguments and the environment of a process. It leaves out the variables that are allowed to hold secrets.
func (s *Secrets) Process(p Process, allowed ...string) []Leak {
	leaks := s.Search("the arguments of "+p.Name, []byte(strings.Join(p.Arguments, "\n")))
	for _, variable := range p.Variables {
		name, value, _ := strings.Cut(variable, "=")
		if !slices.Contains(allowed, name) {
			leaks = append(leaks, s.Search("the variable "+name+" of "+p.Name, []byte(value))...)
		}
	}
	return leaks
}
