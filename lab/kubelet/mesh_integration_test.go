package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/workload"
)

// meshCluster is one of the clusters in the tests' mesh.
type meshCluster struct {
	*linkedCluster
	name string
	id   int
}

// address is the mesh address of a cluster.
func meshAddress(id int) string { return fmt.Sprintf("10.25.1%d.100", id) }

func startMeshCluster(t *testing.T, link *network.Link, name string, id int) *meshCluster {
	at := func(host int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("10.25.1%d.%d/24", id, host)) }
	api := at(10)
	require.NoError(t, link.Add(api))
	m := &meshCluster{linkedCluster: &linkedCluster{}, name: name, id: id}
	m.real = startPlaneAt(t, planeOptions{
		name: name, loopback: netip.AddrFrom4([4]byte{127, 1, byte(id), 1}), advertise: api.Addr(), link: link,
		endpoint: "https://" + netip.AddrPortFrom(api.Addr(), 6443).String(),
		change: func(c *v1alpha1.Config) {
			c.ClusterConfig.ClusterNetwork.PodSubnet = []string{fmt.Sprintf("10.24%d.0.0/16", 2*id+2)}
			c.ClusterConfig.ClusterNetwork.ServiceSubnet = []string{fmt.Sprintf("10.24%d.0.0/16", 2*id+3)}
		},
		workloads: workload.Registry{
			CRDs: data(t, "cilium-crds"),
			Images: map[string]workload.Image{"clustermesh-apiserver": {Files: map[string]string{
				"/usr/bin/clustermesh-apiserver":   kubetest.Binary(t, "clustermesh-apiserver"),
				"/usr/bin/etcd":                    kubetest.Binary(t, "etcd"),
				"/var/lib/cilium/etcd-config.yaml": filepath.Join(data(t, "clustermesh-apiserver"), "etcd-config.yaml"),
			}}},
		},
	})
	stop, err := m.plane.Serve(api.Addr(), nil)
	require.NoError(t, err)
	t.Cleanup(stop)
	for _, node := range []struct {
		name string
		host int
	}{{"cp-1", 11}, {"worker-1", 21}} {
		require.NoError(t, link.Add(at(node.host)))
		_, err := m.Start(t.Context(), NodeOptions{Name: name + "-" + node.name, Addresses: []netip.Addr{at(node.host).Addr()},
			ControlPlane: node.name == "cp-1", TalosVersion: "v1.12.7", KubernetesVersion: kubetest.Version, BootID: "1"})
		require.NoError(t, err)
	}
	m.dynamic, err = dynamic.NewForConfig(m.rest)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			m.tell(t)
		}
	})
	return m
}

// tell logs the state of Cilium's pods, and the ends of their logs.
func (m *meshCluster) tell(t *testing.T) {
	list, err := m.api.CoreV1().Pods("kube-system").List(context.WithoutCancel(t.Context()),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=cilium"})
	if err != nil {
		t.Log(err)
		return
	}
	for _, pod := range list.Items {
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			state, _ := json.Marshal(c.State)
			t.Logf("%s %s ready=%t restarts=%d %s", pod.Name, c.Name, c.Ready, c.RestartCount, state)
			log, _ := os.ReadFile(m.logPath(&pod, c.Name, c.RestartCount))
			if lines := strings.Split(string(log), "\n"); pod.Labels["k8s-app"] == "clustermesh-apiserver" || c.Name == "cilium-agent" {
				t.Log(strings.Join(lines[max(0, len(lines)-15):], "\n"))
			}
		}
	}
}

// installCilium installs the real chart with a peer, and what assigns and announces the mesh address.
func (m *meshCluster) installCilium(t *testing.T, ca *meshCA, peer string, peerID int) {
	t.Helper()
	leaf := func(cn string, names ...string) map[string]any {
		crt, key := ca.issue(t, cn, time.Hour, names...)
		return map[string]any{"cert": base64.StdEncoding.EncodeToString(crt), "key": base64.StdEncoding.EncodeToString(key)}
	}
	m.install(t, filepath.Join(data(t, "cilium-charts"), "cilium-1.18.7.tgz"), "cilium", "kube-system", map[string]any{
		"cluster": map[string]any{"name": m.name, "id": m.id},
		"hubble":  map[string]any{"enabled": false}, "envoy": map[string]any{"enabled": false},
		"operator": map[string]any{"replicas": 1}, "l2announcements": map[string]any{"enabled": true},
		"tls": map[string]any{"ca": map[string]any{"cert": base64.StdEncoding.EncodeToString(ca.pem)}},
		"clustermesh": map[string]any{
			"useAPIServer": true,
			"config": map[string]any{"enabled": true, "clusters": []any{map[string]any{
				"name": peer, "port": 2379, "ips": []any{meshAddress(peerID)}}}},
			"apiserver": map[string]any{
				"service": map[string]any{"type": "LoadBalancer", "annotations": map[string]any{"lbipam.cilium.io/ips": meshAddress(m.id)}},
				"tls": map[string]any{"authMode": "legacy", "auto": map[string]any{"enabled": false},
					"server": leaf("clustermesh-apiserver.cilium.io", "clustermesh-apiserver.cilium.io", "*.mesh.cilium.io",
						"clustermesh-apiserver.kube-system.svc"),
					"admin": leaf("admin-" + m.name), "remote": leaf("remote")},
			},
		},
	})
	crt, key := ca.issue(t, "local-"+m.name, time.Hour)
	_, err := m.api.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "clustermesh-apiserver-local-cert"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"ca.crt": ca.pem, "tls.crt": crt, "tls.key": key},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, m.apply(t, objects(t, fmt.Sprintf(`apiVersion: cilium.io/v2
kind: CiliumLoadBalancerIPPool
metadata: {name: %s}
spec: {blocks: [{cidr: 10.25.1%d.96/28}]}
---
apiVersion: cilium.io/v2alpha1
kind: CiliumL2AnnouncementPolicy
metadata: {name: %[1]s}
spec: {loadBalancerIPs: true}
`, m.name, m.id))...))
}

// meshView is the part of Cilium's RemoteCluster that the tests read.
type meshView struct {
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	Connected bool   `json:"connected"`
	Status    string `json:"status"`
	Nodes     int    `json:"num-nodes"`
	Synced    struct {
		Nodes      bool `json:"nodes"`
		Services   bool `json:"services"`
		Identities bool `json:"identities"`
		Endpoints  bool `json:"endpoints"`
	} `json:"synced"`
	Config struct {
		ID        int  `json:"cluster-id"`
		Retrieved bool `json:"retrieved"`
		Cached    bool `json:"kvstoremesh"`
	} `json:"config"`
}

// agentSees is what the agent of a node says about the only peer.
func (m *meshCluster) agentSees(t *testing.T, node string) meshView {
	t.Helper()
	list, err := m.api.CoreV1().Pods("kube-system").List(t.Context(),
		metav1.ListOptions{LabelSelector: "k8s-app=cilium", FieldSelector: "spec.nodeName=" + m.name + "-" + node})
	if err != nil || len(list.Items) != 1 {
		return meshView{}
	}
	out, _, err := m.exec(t, list.Items[0].Name, true, "cilium-dbg", "status", "-o", "json")
	var status struct {
		Mesh struct {
			Clusters []meshView `json:"clusters"`
		} `json:"cluster-mesh"`
	}
	if err != nil || json.Unmarshal([]byte(out), &status) != nil || len(status.Mesh.Clusters) != 1 {
		return meshView{}
	}
	return status.Mesh.Clusters[0]
}

func (m *meshCluster) meshPod(t *testing.T) string {
	t.Helper()
	list, err := m.api.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=clustermesh-apiserver"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	return list.Items[0].Name
}

// copySees is what kvstoremesh says about the only peer.
func (m *meshCluster) copySees(t *testing.T) meshView {
	t.Helper()
	out, stderr, err := m.execIn(t, m.meshPod(t), "kvstoremesh", true, "clustermesh-apiserver", "kvstoremesh-dbg", "status", "-o", "json")
	require.NoError(t, err, "%s%s", out, stderr)
	var list []meshView
	require.NoError(t, json.Unmarshal([]byte(out), &list), out)
	require.Len(t, list, 1)
	return list[0]
}

// meshCA is the CA of a mesh.
type meshCA struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newMeshCA(t *testing.T) *meshCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Cilium CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	return &meshCA{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), cert: cert, key: key}
}

func (ca *meshCA) issue(t *testing.T, cn string, valid time.Duration, names ...string) (crt, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: cn}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(valid), KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if len(names) > 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &private.PublicKey, ca.key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestMesh_TwoClustersReadEachOtherThroughTheRealMeshAPIServer(t *testing.T) {
	kubetest.Binary(t, "clustermesh-apiserver")
	if !inNamespaces(t) {
		return
	}
	link, err := network.NewLink()
	require.NoError(t, err)
	ca := newMeshCA(t)
	infra := startMeshCluster(t, link, "infra", 1)
	infra.installCilium(t, ca, "apps", 2)
	infra.available(t, "kube-system", "clustermesh-apiserver")
	infra.eventually(t, "the mesh address is assigned", func() bool {
		s, err := infra.api.CoreV1().Services("kube-system").Get(t.Context(), "clustermesh-apiserver", metav1.GetOptions{})
		return err == nil && len(s.Status.LoadBalancer.Ingress) == 1 && s.Status.LoadBalancer.Ingress[0].IP == meshAddress(1)
	})
	infra.eventually(t, "the mesh address answers", func() bool { return answers(meshAddress(1)) })
	infra.eventually(t, "the agents are connected to the copy, which has nothing of the absent peer", func() bool {
		one := infra.agentSees(t, "worker-1")
		return one.Name == "apps" && one.Connected && !one.Ready && !one.Config.Retrieved
	})
	require.False(t, infra.copySees(t).Connected)

	apps := startMeshCluster(t, link, "apps", 2)
	apps.installCilium(t, ca, "infra", 1)
	apps.available(t, "kube-system", "clustermesh-apiserver")
	began := time.Now()
	for _, both := range []struct {
		own  *meshCluster
		peer *meshCluster
	}{{apps, infra}, {infra, apps}} {
		for _, node := range []string{"cp-1", "worker-1"} {
			both.own.eventually(t, both.own.name+"-"+node+" sees its peer", func() bool {
				one := both.own.agentSees(t, node)
				return one.Name == both.peer.name && one.Ready && one.Config.ID == both.peer.id && one.Config.Cached && one.Nodes == 2 &&
					one.Synced.Nodes && one.Synced.Services && one.Synced.Identities && one.Synced.Endpoints
			})
		}
		one := both.own.copySees(t)
		require.True(t, one.Ready, "%+v", one)
		require.Equal(t, 2, one.Nodes)
	}
	t.Logf("both clusters see each other %s after the second one's mesh API server was ready", time.Since(began).Round(time.Millisecond))

	out, _, err := infra.execIn(t, infra.meshPod(t), "kvstoremesh", true, "clustermesh-apiserver", "kvstoremesh-dbg", "troubleshoot", "apps")
	require.NoError(t, err)
	require.Contains(t, out, "apps")
	require.NotContains(t, out, "❌", strings.TrimSpace(out))

	out, stderr, err := infra.exec(t, infra.agent(t, "infra-worker-1").Name, true, "cilium-dbg", "troubleshoot", "clustermesh", "apps")
	require.NoError(t, err, stderr)
	require.Contains(t, out, "https://clustermesh-apiserver.kube-system.svc:2379")
	require.Contains(t, out, "Etcd connection successfully established", out)

	require.NoError(t, apps.faults.On(fault.Fault{Kind: fault.MeshGone, Target: "apps"}))
	apps.eventually(t, "the mesh address does not answer", func() bool { return !answers(meshAddress(2)) })
	require.True(t, infra.agentSees(t, "worker-1").Ready, "an agent reads the copy, which stays")
}

// answers tells whether something accepts connections at a mesh address.
func answers(address string) bool {
	c, err := net.DialTimeout("tcp", address+":2379", time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
