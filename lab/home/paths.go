package home

import "path/filepath"

// Name is the folder's own name.
func (h *Home) Name() string { return filepath.Base(h.Dir) }

// Logs has one file for each process, simulated machine and phase.
func (h *Home) Logs() string { return filepath.Join(h.Dir, "logs") }

// Spans has the times in which simulated machines worked, a JSON object a line.
func (h *Home) Spans() string { return filepath.Join(h.Logs(), "machines.json") }

// Picture is the page about the last rehearsed `up` of one of the checkout's stacks. It is outside the lab's folder, and so remains when
// the lab is removed.
func (h *Home) Picture(checkout, stack string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(h.Dir)), "pictures", NameOf(checkout), stack+".html")
}

// Bin has links to the tools, with the names of the commands.
func (h *Home) Bin() string { return filepath.Join(h.Dir, "bin") }

// Project is the folder in which Pulumi runs: the project file, and copies of the stack files, to which Pulumi may write its salt and
// secrets.
func (h *Home) Project() string { return filepath.Join(h.Dir, "project") }

// Copied has the stack files as they were when they were last copied to Project.
func (h *Home) Copied() string { return filepath.Join(h.Dir, "copied") }

// Backend has Pulumi's state.
func (h *Home) Backend() string { return filepath.Join(h.Dir, "state") }

// UserState stands for the folder in which a user's programs keep their state: a run keeps snapshots of etcd there.
func (h *Home) UserState() string { return filepath.Join(h.Dir, "user-state") }

// PulumiHome is Pulumi's own folder.
func (h *Home) PulumiHome() string { return filepath.Join(h.Dir, "pulumi") }

// Plugins is the folder in which Pulumi looks for plugins.
func (h *Home) Plugins() string { return filepath.Join(h.PulumiHome(), "plugins") }

// Clusters has the data of the Kubernetes control planes and of the processes in pods.
func (h *Home) Clusters() string { return filepath.Join(h.Dir, "clusters") }

// Machines has the disks of the VMs that run in QEMU.
func (h *Home) Machines() string { return filepath.Join(h.Dir, "vm") }

// Socket is the socket for commands from outside the lab's namespaces.
func (h *Home) Socket() string { return filepath.Join(h.Dir, "control.sock") }

// CA is the CA certificate that programs in the lab trust.
func (h *Home) CA() string { return filepath.Join(h.Dir, "ca.crt") }

// PrivateCA is the CA certificate that no program in the lab trusts unless it is told to.
func (h *Home) PrivateCA() string { return filepath.Join(h.Dir, "private-ca.crt") }

// Bucket has the objects of a bucket for snapshots of etcd.
func (h *Home) Bucket(name string) string { return filepath.Join(h.Dir, "buckets", name) }

// Git has the bare repository of a Git host.
func (h *Home) Git(host string) string { return filepath.Join(h.Dir, "git", host) }

// GitSSH has the keys of a Git host's SSH server.
func (h *Home) GitSSH(host string) string { return h.Git(host) + "-ssh" }

// GitApp has the key of a Git host's GitHub App.
func (h *Home) GitApp(host string) string { return h.Git(host) + "-app" }

// OnePassword has the simulated 1Password account: the credentials and the token of its Connect server, and the vaults.
func (h *Home) OnePassword() string { return filepath.Join(h.Dir, "1password") }

// Ceph has the files in the volumes of the simulated Ceph.
func (h *Home) Ceph() string { return filepath.Join(h.Dir, "ceph") }

// MeshCA is the CA, certificate and key, that the stacks with peers share.
func (h *Home) MeshCA() string { return filepath.Join(h.Dir, "mesh-ca.pem") }

// Hosts is the lab's own hosts file.
func (h *Home) Hosts() string { return filepath.Join(h.Dir, "hosts") }

// Resolv is the lab's own resolver configuration, without a server.
func (h *Home) Resolv() string { return filepath.Join(h.Dir, "resolv.conf") }

// Kubeconfig has one context for each cluster that has started.
func (h *Home) Kubeconfig() string { return filepath.Join(h.Dir, "kubeconfig") }

// Talosconfig has one context for each cluster that has started.
func (h *Home) Talosconfig() string { return filepath.Join(h.Dir, "talosconfig") }

// Tools is the file with the paths of the real programs.
func (h *Home) Tools() string { return filepath.Join(h.Dir, "tools.json") }

func (h *Home) settings() string { return filepath.Join(h.Dir, "lab.json") }
func (h *Home) lock() string     { return filepath.Join(h.Dir, "lock") }
func (h *Home) pid() string      { return filepath.Join(h.Dir, "pid") }
