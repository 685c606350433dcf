package report

import (
	"fmt"
	"slices"
	"strings"
)

// Types of resources that have sections of their own.
const (
	typeVM            = "proxmoxve:VM/virtualMachine:VirtualMachine"
	typeConfiguration = "slipway:talos:MachineConfiguration"
	typeRelease       = "kubernetes:helm.sh/v3:Release"
	typeCommand       = "command:local:Command"
	typeNamespace     = "kubernetes:core/v1:Namespace"
)

// Resources are the differences between the resources that both programs register.
type Resources struct {
	Compared bool             `json:"compared"` // both programs ran
	Before   int              `json:"before"`
	After    int              `json:"after"`
	Added    []string         `json:"added,omitempty"`
	Removed  []string         `json:"removed,omitempty"`
	Changed  []ResourceChange `json:"changed,omitempty"`

	roots map[string]bool // names of the components at the top in which anything differs
}

// ResourceChange is a resource whose inputs differ.
type ResourceChange struct {
	Type  string   `json:"type"`
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

func (r Resources) len() int { return len(r.Added) + len(r.Removed) + len(r.Changed) }

// Title names a resource by its type and its name.
func (r Resource) Title() string { return short(r.Type) + " " + r.Name }

// short returns the part of a type's token that people read: VirtualMachine.
func short(token string) string { return token[strings.LastIndexAny(token, ":/")+1:] }

// Works reports whether the program ran, and without an error.
func (p Program) Works() bool { return p.Ran && len(p.Problems) == 0 }

func compareResources(before, after Program) Resources {
	r := Resources{Before: len(before.Resources), After: len(after.Resources), roots: map[string]bool{}}
	if !before.Works() || !after.Works() {
		return r
	}
	r.Compared = true
	was := byTitle(before)
	for _, resource := range after.Resources {
		former, known := was[resource.Title()]
		delete(was, resource.Title())
		if !known {
			r.Added = append(r.Added, resource.Title())
			r.roots[resource.Root] = true
			continue
		}
		old, now := withoutMissing(plain(former.Inputs), plain(resource.Inputs))
		lines := differ(Lines(old), Lines(now))
		if former.Protect != resource.Protect {
			lines = append(lines, fmt.Sprintf("- (protected) = %v", former.Protect), fmt.Sprintf("+ (protected) = %v", resource.Protect))
		}
		if len(lines) > 0 {
			r.Changed = append(r.Changed, ResourceChange{resource.Type, resource.Name, lines})
			r.roots[resource.Root] = true
		}
	}
	for _, resource := range before.Resources {
		if _, gone := was[resource.Title()]; gone {
			r.Removed = append(r.Removed, resource.Title())
			r.roots[resource.Root] = true
		}
	}
	return r
}

// withoutMissing leaves out texts that are empty on one side and known only after a run on the other: the Proxmox provider names an output
// such as the UUID of a new VM as unknown in one preview, and not at all in another.
func withoutMissing(was, is any) (any, any) {
	switch old := was.(type) {
	case map[string]any:
		if now, both := is.(map[string]any); both {
			for key := range old {
				if _, has := now[key]; has {
					old[key], now[key] = withoutMissing(old[key], now[key])
				}
			}
		}
	case []any:
		if now, both := is.([]any); both && len(old) == len(now) {
			for i := range old {
				old[i], now[i] = withoutMissing(old[i], now[i])
			}
		}
	case string:
		if old == "" && is == Later || old == Later && is == "" {
			return nil, nil
		}
	}
	return was, is
}

func byTitle(p Program) map[string]Resource {
	all := map[string]Resource{}
	for _, resource := range p.Resources {
		all[resource.Title()] = resource
	}
	return all
}

// of returns the change of a resource; nil if it does not change.
func (r Resources) of(token, suffix string) *ResourceChange {
	return find(r.Changed, func(change ResourceChange) bool {
		return change.Type == token && strings.HasSuffix(change.Name, suffix)
	})
}

// commands returns the names of the commands that run again.
func (r Resources) commands() []string {
	var names []string
	for _, change := range r.Changed {
		if change.Type == typeCommand {
			names = append(names, change.Name)
		}
	}
	return names
}

// inputs returns the inputs at the top that differ in the lines of a difference, each once.
func inputs(lines []string) []string {
	var found []string
	for _, line := range lines {
		if input := inputOf(strings.TrimLeft(line[2:], " ")); !slices.Contains(found, input) {
			found = append(found, input)
		}
	}
	return found
}

// inputOf returns the input at the top of a path, or of a line that begins with a path: a of a.b[1].
func inputOf(path string) string {
	if end := strings.IndexAny(path, ".[ "); end > 0 {
		return path[:end]
	}
	return path
}
