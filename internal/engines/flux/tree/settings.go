package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// SettingsFile is the name of the file with the settings of a tree. It is in a folder above the cluster's, where Flux does not read it.
const SettingsFile = "slipway-settings.yaml"

// Setting is what the file of a tree says of a setting that a stack file gives in gitops.settings.
type Setting struct {
	Meaning string // Markdown
	Default string // in the manifests; "" if there is none
	Example string

	// The value has one of these forms; without one, any text.
	Choices  []string
	Form     string // name of a form of package syntax
	Pattern  string // regular expression for the whole value
	Quantity bool   // a quantity of Kubernetes

	// Needs are the settings that are required with a value of this setting, whose key may follow the stack file, too.
	Needs map[string][]string
}

// Settings returns the settings of the tree to which a folder belongs: those of all such files above it, of which the nearest counts. It is
// nil if there is no such file.
func Settings(repository fs.FS, folder string) (map[string]Setting, error) {
	var all map[string]Setting
	for at := clean(folder); at != "."; {
		at = path.Dir(at)
		name := path.Join(at, SettingsFile)
		text, err := fs.ReadFile(repository, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := parseSettings(name, text)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, all)
		all = found
	}
	return all, nil
}

func parseSettings(name string, text []byte) (map[string]Setting, error) {
	settings, decoder := map[string]Setting{}, yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&settings); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		one := settings[key]
		_, known := syntax.Lookup(one.Form)
		_, err := regexp.Compile(one.Pattern)
		if one.Form != "" && !known {
			err = fmt.Errorf("%s is no form", one.Form)
		}
		if err == nil {
			err = errors.Join(one.mustTake(one.Default), one.mustTake(one.Example))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", name, key, err))
		}
	}
	return settings, errors.Join(problems...)
}

// mustTake returns an error if a value of the file itself has not the form.
func (s Setting) mustTake(value string) error {
	if problem, _ := s.fault(value); value != "" && problem != "" {
		return fmt.Errorf("%s %s", value, problem)
	}
	return nil
}

// fault returns what is wrong with a value, and the remedy.
func (s Setting) fault(value string) (problem, remedy string) {
	like := "write it like " + s.example()
	switch form, ok := syntax.Lookup(s.Form); {
	case len(s.Choices) > 0 && !slices.Contains(s.Choices, value):
		return "is not known", cluster.OneOf(value, s.Choices)
	case ok:
		if fault := form.Check(value); fault != nil {
			return fault.Problem, fault.Remedy
		}
	case s.Pattern != "" && !regexp.MustCompile("^(?:"+s.Pattern+")$").MatchString(value):
		return "has another form than the manifests take", like
	case s.Quantity:
		if quantity, err := resource.ParseQuantity(value); err != nil {
			return "is no quantity of Kubernetes", like
		} else if quantity.Sign() <= 0 {
			return "is no size", like
		}
	}
	return "", ""
}

func (s Setting) example() string {
	if s.Example != "" {
		return s.Example
	}
	return s.Default
}

// checkSettings returns the problems of gitops.settings with the manifests that were read: values in the wrong form, missing settings that
// another setting needs, and, if all manifests were read, misspelt names that no manifest uses. There are none if the tree has no file with
// its settings.
func (r *reader) checkSettings(stack *cluster.Cluster, all bool) (cluster.Problems, error) {
	known, err := Settings(r.repository, stack.GitOps.Path)
	if err != nil || known == nil {
		return nil, err
	}
	var findings cluster.Findings
	given, values := stack.GitOps.Settings, stack.Settings()
	at := func(key string) string { return cluster.KeyPath("gitops.settings", key) }
	for _, key := range slices.Sorted(maps.Keys(given)) {
		setting, is := known[key]
		if all && !is && !r.used[key] {
			// A setting of the user's own is right, so only a slip of one or two letters is taken for another setting.
			if meant := syntax.Nearest(key, slices.Sorted(maps.Keys(known)), min(2, len(key)/4)); meant != "" && given[meant] == "" {
				findings.Found(at(key), "did you mean "+meant+"?", "is used by no manifest")
			}
		}
		if problem, remedy := setting.fault(given[key]); problem != "" {
			findings.Found(at(key), remedy, "%s %s", syntax.ShownText(given[key]), problem)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		for _, needed := range known[key].Needs[values[key]] {
			if values[needed] == "" {
				findings.Found(at(needed), "add it, such as "+known[needed].example(), "is missing, and %s", because(key, values[key]))
			}
		}
	}
	return findings.All(), nil
}

// because returns what gives a setting its value.
func because(key, value string) string {
	if from := follows(key); from != "" {
		return from + " needs it"
	}
	return key + " is " + value
}
