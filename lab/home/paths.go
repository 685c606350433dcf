package home

import "path/filepath"

// Name is the folder's own name.
func (h *Home) Name() string { return filepath.Base(h.Dir) }

// Logs holds one file for every process, simulated machine and phase.
func (h *Home) Logs() string { return filepath.Join(h.Dir, "logs") }

// Bin holds links to the tools, under the names that people type.
func (h *Home) Bin() string { return filepath.Join(h.Dir, "bin") }

// Stacks holds the copies of the stack files that Pulumi may write its salt and secrets to.
func (h *Home) Stacks() string { return filepath.Join(h.Dir, "stacks") }

// Backend is Pulumi's state.
func (h *Home) Backend() string { return filepath.Join(h.Dir, "state") }

// PulumiHome is Pulumi's own folder.
func (h *Home) PulumiHome() string { return filepath.Join(h.Dir, "pulumi") }

// Plugins is where Pulumi looks for plugins.
func (h *Home) Plugins() string { return filepath.Join(h.PulumiHome(), "plugins") }

// Clusters holds the data of the Kubernetes control planes and of the processes in pods.
func (h *Home) Clusters() string { return filepath.Join(h.Dir, "clusters") }

// Socket is where the lab answers commands from outside its namespaces.
func (h *Home) Socket() string { return filepath.Join(h.Dir, "control.sock") }

// CA is the certificate that everything in the lab trusts.
func (h *Home) CA() string { return filepath.Join(h.Dir, "ca.crt") }

// Hosts is the lab's own hosts file.
func (h *Home) Hosts() string { return filepath.Join(h.Dir, "hosts") }

// Resolv is the lab's own resolver configuration, which knows no server.
func (h *Home) Resolv() string { return filepath.Join(h.Dir, "resolv.conf") }

// Kubeconfig has one context for each cluster that has come up.
func (h *Home) Kubeconfig() string { return filepath.Join(h.Dir, "kubeconfig") }

// Talosconfig has one context for each cluster that has come up.
func (h *Home) Talosconfig() string { return filepath.Join(h.Dir, "talosconfig") }

// Tools notes where the real programs lie.
func (h *Home) Tools() string { return filepath.Join(h.Dir, "tools.json") }

func (h *Home) settings() string { return filepath.Join(h.Dir, "lab.json") }
func (h *Home) lock() string     { return filepath.Join(h.Dir, "lock") }
func (h *Home) pid() string      { return filepath.Join(h.Dir, "pid") }
