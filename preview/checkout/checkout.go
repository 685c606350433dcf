// Package checkout reads what a checkout declares of its stacks, without Pulumi, cluster and passphrase.
package checkout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/preview/flux"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

// Stack is a stack of a checkout.
type Stack struct {
	report.Stack

	Cluster *cluster.Cluster // nil with problems
	Text    []byte           // of the stack file
	Source  config.Source    // the stack file, parsed
}

// Read reads all stacks of a checkout, in the order of their names. Problems of a stack file are part of the stack.
func Read(folder string) ([]Stack, error) {
	names, err := config.Stacks(os.DirFS(folder))
	if err != nil {
		return nil, err
	}
	var stacks []Stack
	for _, name := range names {
		stack, err := read(folder, name)
		if err != nil {
			return nil, fmt.Errorf("stack %s: %w", name, err)
		}
		stacks = append(stacks, stack)
	}
	compare(stacks)
	return stacks, nil
}

func read(folder, name string) (Stack, error) {
	s := Stack{Stack: report.Stack{Name: name}}
	var err error
	if s.File, s.Text, err = config.ReadFile(config.Checkout(folder), name); err != nil {
		return s, err
	}
	if s.Source, err = config.ParseFile(filepath.Join(folder, s.File), s.Text); err != nil {
		s.Problems = s.problems(err)
		return s, nil
	}
	s.Salt, s.Secrets = encrypted(s.Source)
	declared, conflicts, err := config.LoadAmong(s.Source)
	if err != nil {
		s.Problems = s.problems(err)
		return s, nil
	}
	if len(conflicts) > 0 {
		s.Problems = s.problems(conflicts)
		return s, nil
	}
	s.Cluster = declared
	return s, s.describe(folder)
}

// problems returns the problems of the stack file with their lines.
func (s *Stack) problems(err error) []report.Problem {
	all := cluster.ProblemsOf(err)
	if all == nil {
		return []report.Problem{{File: s.File, Text: err.Error()}}
	}
	var found []report.Problem
	for _, problem := range all {
		found = append(found, report.Problem{File: s.File, Line: cmp.Or(problem.Line, s.Source.Line(problem.Path)), Text: problem.Error()})
	}
	return found
}

// describe sets what the cluster declares.
func (s *Stack) describe(folder string) (err error) {
	if s.Keys, err = keys(s.Cluster); err != nil {
		return err
	}
	for _, machine := range s.Cluster.Machines() {
		one, err := describeMachine(s.Cluster, machine)
		if err != nil {
			return err
		}
		s.Machines = append(s.Machines, one)
	}
	s.CRDs = map[string]string{}
	for _, set := range s.Cluster.CRDs.Installed() {
		s.CRDs[set.Name] = strings.TrimSpace(set.Source.Version + " " + set.Source.URL + " " + set.Source.SHA256)
	}
	if s.Cluster.GitOps.Enabled {
		s.Settings = s.Cluster.Settings()
		s.Tree = treeOf(folder, s.Cluster)
	}
	for _, service := range s.Cluster.Services() {
		s.Services = append(s.Services, service.Name)
	}
	s.Owners = map[string]string{}
	for _, release := range s.Cluster.Releases() {
		s.Owners[release.Name] = string(release.Owner)
	}
	s.Charts, err = charts(s.Cluster)
	return err
}

// keys returns all values of a configuration by their paths. Items of a list are named by their names: a new item in between does not
// change the paths of the others.
func keys(c *cluster.Cluster) (map[string]string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	values := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, below := range value {
				walk(cluster.KeyPath(path, key), below)
			}
		case []any:
			for i, item := range value {
				at := cluster.ItemPath(path, i)
				if object, is := item.(map[string]any); is {
					if name, is := object["name"].(string); is && name != "" {
						at = path + "[" + name + "]"
					}
				}
				walk(at, item)
			}
		case nil:
		default:
			if text := fmt.Sprint(value); text != "" {
				values[path] = text
			}
		}
	}
	walk("", all)
	return values, nil
}

func describeMachine(c *cluster.Cluster, machine cluster.Machine) (report.Machine, error) {
	one := report.Machine{
		Name: machine.Name, ControlPlane: machine.Role == cluster.ControlPlane, VMID: machine.VMID, Host: machine.Host,
		DataDisks: len(machine.DataDisks),
	}
	part := func(input, name string, value any) {
		one.Parts = append(one.Parts, report.Part{Input: input, Name: name, Value: fmt.Sprint(value)})
	}
	part(report.Generation, "generation", machine.Generation)
	part("agent", "guest agent", c.Talos.GuestAgent())
	part("cpu", "cores", machine.Cores)
	part("memory", "memory", machine.Memory)
	part("disks", "disk", fmt.Sprintf("%s on %s", machine.Disk, machine.Datastore))
	for _, disk := range machine.DataDisks {
		part("disks", "disk "+disk.Name, fmt.Sprintf("%s on %s", disk.Size, disk.Datastore))
	}
	part("networkDevices", "bridge", machine.Bridge)
	part("networkDevices", "VLAN", machine.VLAN)
	part("networkDevices", "MAC", machine.MAC)
	part("initialization", "address", machine.Address)
	if machine.Address6.IsValid() {
		part("initialization", "IPv6 address", machine.Address6)
	}
	part("tags", "tags", strings.Join(machine.Tags, " "))
	effective, err := machineconfig.Effective(c, machine)
	if err != nil {
		return one, err
	}
	one.Configuration, _ = machineconfig.Lines(effective)
	return one, nil
}

// charts returns the releases with the values that are known without the program: certificates are hidden. Cilium in mode inline is one
// only if an engine owns it: otherwise nobody upgrades its objects.
func charts(c *cluster.Cluster) ([]report.Chart, error) {
	var all []report.Chart
	for _, release := range c.Releases() {
		if release.Name == chart.ReleaseName && c.Cilium.Inline() && !release.Owner.IsEngine() {
			continue
		}
		values, err := release.UserValues.MergedInto(release.Values)
		if release.Name == chart.ReleaseName {
			own := chart.Values{Cluster: c}
			values, err = own.Tree(own.Documents(func(string) any { return report.Hidden }))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", release.Key, err)
		}
		all = append(all, report.Chart{
			Name: release.Name, Namespace: release.Namespace, Chart: release.Chart, Version: release.Version, Repository: release.Repository,
			Values: values, Unrendered: "no folder with charts was given (CHARTS)",
		})
	}
	return all, nil
}

// compare adds to each stack its conflicts with earlier stacks, and with the stacks that it names.
func compare(stacks []Stack) {
	var valid []*Stack
	var declared []*cluster.Cluster
	for i := range stacks {
		if stacks[i].Cluster != nil {
			valid, declared = append(valid, &stacks[i]), append(declared, stacks[i].Cluster)
		}
	}
	for i, found := range cluster.Compare(declared) {
		if len(found) > 0 {
			valid[i].Problems = valid[i].problems(found)
		}
	}
}

// treeOf builds what Flux applies. Uses of settings that nobody defines are problems with their lines.
func treeOf(folder string, c *cluster.Cluster) report.Tree {
	built := report.Tree{Objects: map[string]string{}}
	at, files := flux.Clean(c.GitOps.Path), os.DirFS(folder)
	if _, err := fs.Stat(files, at); errors.Is(err, fs.ErrNotExist) {
		return built // it is in another repository
	}
	for _, err := range unjoined(tree.Check(files, at, c.Settings())) {
		problem := report.Problem{Text: err.Error()}
		if use := (tree.Undefined{}); errors.As(err, &use) {
			problem.File, problem.Line = use.File, use.Line
		}
		built.Problems = append(built.Problems, problem)
	}
	if len(built.Problems) > 0 {
		return built
	}
	read, err := flux.Files(files, at)
	if err != nil {
		return report.Tree{Problems: []report.Problem{{Text: err.Error()}}}
	}
	layers, err := flux.Build(read, at, c.Settings())
	for _, err := range unjoined(err) {
		built.Problems = append(built.Problems, report.Problem{Text: err.Error()})
	}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			built.Objects[object.Title()+" ("+layer.Name+")"] = strings.Join(report.Lines(object.Object), "\n")
		}
	}
	return built
}

// unjoined returns the errors that an error joins.
func unjoined(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	}
	return []error{err}
}

// encrypted returns checksums of a stack file's encryption settings, and of its ciphertexts, by their keys.
func encrypted(file config.Source) (salt string, secrets map[string]string) {
	with, ciphertexts := file.Ciphertexts()
	if with != "" {
		salt = checksum(with)
	}
	for key, text := range ciphertexts {
		ciphertexts[key] = checksum(text)
	}
	return salt, ciphertexts
}

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Side returns the stacks as one side of a comparison.
func Side(name string, stacks []Stack) report.Side {
	side := report.Side{Name: name}
	for _, stack := range stacks {
		side.Stacks = append(side.Stacks, stack.Stack)
	}
	slices.SortFunc(side.Stacks, func(a, b report.Stack) int { return strings.Compare(a.Name, b.Name) })
	return side
}
