package cilium

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload"
)

const (
	// meshFolder is the agents' folder with a file for each peer, and with the certificates that these name.
	meshFolder = "/var/lib/cilium/clustermesh"
	// meshInterval is how often an agent looks for changes in that folder.
	meshInterval = 10 * time.Second
)

// meshFiles are the files of meshFolder, which are the same in all agents of a cluster. They are read at most once in a while for all.
type meshFiles struct {
	mu    sync.Mutex
	asked time.Time
	files map[string][]byte
}

// read returns the files that the agent's volumes have there now. While the API server does not answer, the files stay.
func (m *meshFiles) read(ctx context.Context, c workload.Container) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) < meshInterval/2 {
		return m.files
	}
	at := slices.IndexFunc(c.Spec.VolumeMounts, func(v corev1.VolumeMount) bool { return strings.TrimSuffix(v.MountPath, "/") == meshFolder })
	if at < 0 {
		return nil
	}
	volume, err := c.Volume(c.Spec.VolumeMounts[at].Name)
	if err != nil {
		return nil
	}
	m.asked = time.Now()
	if files, err := workload.VolumeFiles(ctx, c, volume); err == nil {
		m.files = files
	}
	return m.files
}

// mesh is what an agent does for the cluster mesh: it keeps a connection for each peer.
type mesh struct {
	mu    sync.Mutex
	peers map[string]*peer
	used  map[uint32]string // names of the peers by their cluster ids: two peers cannot have the same
}

// followPeers connects to the peers that the agent's files name, until ctx ends.
func (a *agent) followPeers(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for more := true; more; more = wait.Pause(ctx, meshInterval) {
		files := a.shared.mesh.read(ctx, a.Container)
		a.mesh.adjust(ctx, a, files, &running)
	}
}

// adjust starts connections to new peers, and ends those whose configuration is gone or has changed.
func (m *mesh) adjust(ctx context.Context, a *agent, files map[string][]byte, running *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers == nil {
		m.peers, m.used = map[string]*peer{}, map[uint32]string{}
	}
	for name, p := range m.peers {
		if now, is := files[name]; !is || !bytes.Equal(now, p.file) {
			p.cancel()
			delete(m.peers, name)
			maps.DeleteFunc(m.used, func(_ uint32, by string) bool { return by == name })
			a.logf("info", `msg="Remote cluster disconnected" clusterName=%s subsys=clustermesh`, name)
		}
	}
	for name, file := range files {
		// Every file with endpoints is the configuration of a peer; the cluster itself is none.
		if m.peers[name] != nil || !bytes.Contains(file, []byte("endpoints:")) || name == a.settings().cluster() {
			continue
		}
		p := &peer{agent: a, name: name, file: file}
		ctx, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		m.peers[name] = p
		a.logf("info", `msg="Connecting to remote cluster" clusterName=%s subsys=clustermesh`, name)
		running.Go(func() { p.run(ctx) })
	}
}

// reserve reserves a cluster id for a peer, or says why it cannot have it.
func (m *mesh) reserve(id, own uint32, name string) (problem string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch by, taken := m.used[id]; {
	case id == 0:
		return "ClusterID 0 is reserved"
	case id > maxClusters:
		return "ClusterID > 255 is not supported"
	case id == own:
		return "clusterID " + number(id) + " is assigned to the local cluster"
	case taken && by != name:
		return "clusterID " + number(id) + " is already used"
	}
	maps.DeleteFunc(m.used, func(_ uint32, by string) bool { return by == name })
	m.used[id] = name
	return ""
}

// report adds the peers to the agent's status.
func (m *mesh) report(s *agentStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers == nil {
		return
	}
	s.ClusterMesh = &clusterMeshStatus{Clusters: []remoteCluster{}}
	for _, name := range slices.Sorted(maps.Keys(m.peers)) {
		p := m.peers[name]
		remote, controllers := p.status()
		s.ClusterMesh.Clusters = append(s.ClusterMesh.Clusters, remote)
		s.Controllers = append(s.Controllers, controllers...)
	}
}

// file is the content of a file that a peer's configuration names by its path in the agent's container.
func (a *agent) file(ctx context.Context, name string) ([]byte, bool) {
	if path.Dir(name) != meshFolder {
		return nil, false
	}
	content, is := a.shared.mesh.read(ctx, a.Container)[path.Base(name)]
	return content, is
}

// troubleshoot runs Cilium's own search for faults in the connections to peers, with the agent's files. `clustermesh-apiserver` and
// `cilium-dbg` contain the same one; only cilium-dbg resolves names of Services by itself.
func (a *agent) troubleshoot(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	if len(a.shared.Server.Files) == 0 {
		return workload.UnknownCommand([]string{"cilium-dbg", "troubleshoot"}, stderr)
	}
	ctx, cancel := context.WithCancel(ctx) // ends what keeps the files of the container
	defer cancel()
	c := a.Container
	var err error
	if c.Dir, err = os.MkdirTemp(c.Dir, "troubleshoot-"); err != nil {
		return -1, err
	}
	defer os.RemoveAll(c.Dir)
	c.Spec.VolumeMounts = slices.DeleteFunc(slices.Clone(c.Spec.VolumeMounts), func(v corev1.VolumeMount) bool {
		return strings.TrimSuffix(v.MountPath, "/") != meshFolder
	})
	spec, err := a.shared.Server.Container(ctx, c, map[string]string{"CLUSTER_NAME": a.settings().cluster()})
	if err != nil {
		return -1, err
	}
	names, err := workload.ServiceNames(ctx, c)
	if err != nil {
		return -1, err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "hosts"), append(workload.PodHosts(c), names...), 0o600); err != nil {
		return -1, err
	}
	spec.Path, spec.Args = "/usr/bin/clustermesh-apiserver", append([]string{"kvstoremesh-dbg", "troubleshoot"}, args...)
	return process.Run(ctx, spec, nil, stdout, stderr)
}
