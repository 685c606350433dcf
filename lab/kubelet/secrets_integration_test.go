package kubelet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/lab/connect"
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/registry/charts"
	"github.com/slipway-platform/slipway/lab/tools"
	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/services"
)

// inNamespaces runs the calling test again in namespaces of its own, where pods have addresses that an EndpointSlice accepts.
// It returns true in there.
func inNamespaces(t *testing.T) bool {
	t.Helper()
	const inside = "SLIPWAY_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := c.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("no namespaces on this machine: %v", err)
	}
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
	return false
}

// linkedCluster is a real cluster with two nodes on a link, into which charts can be installed.
type linkedCluster struct {
	*real
	account *connect.Account // of 1Password, if the test has one
	dynamic dynamic.Interface
}

func startSecrets(t *testing.T) *linkedCluster {
	operator, controller := kubetest.Binary(t, "external-secrets"), kubetest.Binary(t, "sealed-secrets-controller")
	link, err := network.NewLink()
	require.NoError(t, err)
	s := &linkedCluster{}
	folder := t.TempDir()
	s.account, err = connect.OpenAccount(folder)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, connect.VaultsFile),
		[]byte("vaults: [{name: lab, items: [{title: probe, fields: {password: lab-probe}}]}]\n"), 0o600))
	server := &services.Connect{Account: s.account}
	api := netip.MustParsePrefix("10.25.11.10/24")
	require.NoError(t, link.Add(api))
	s.real = startPlaneAt(t, planeOptions{advertise: api.Addr(), link: link, workloads: withCRDs(t, workload.Registry{
		Behaviours: map[string]workload.Behaviour{"connect-api": server.StartAPI, "connect-sync": server.StartSync,
			"external-secrets": services.ExternalSecrets(operator, nil), "sealed-secrets-controller": services.SealedSecrets(controller, nil)},
		Listens: []string{"connect-api", "connect-sync", "external-secrets", "sealed-secrets-controller"},
	})})
	for name, address := range map[string]string{"infra-cp-1": "10.25.11.11/24", "infra-worker-1": "10.25.11.21/24"} {
		p := netip.MustParsePrefix(address)
		require.NoError(t, link.Add(p))
		_, err := s.Start(t.Context(), NodeOptions{Name: name, Addresses: []netip.Addr{p.Addr()}, ControlPlane: name == "infra-cp-1",
			TalosVersion: "v1.12.7", KubernetesVersion: kubetest.Version, BootID: "1"})
		require.NoError(t, err)
	}
	s.deploy(t)
	s.dynamic, err = dynamic.NewForConfig(s.rest)
	require.NoError(t, err)
	return s
}

// apply creates objects.
func (s *linkedCluster) apply(t *testing.T, objects ...*unstructured.Unstructured) error {
	t.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.api.Discovery()))
	for _, o := range objects {
		var mapping *meta.RESTMapping
		var err error
		s.eventually(t, "the API server knows "+o.GroupVersionKind().String(), func() bool {
			if mapping, err = mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version); err != nil {
				mapper.Reset()
			}
			return err == nil
		})
		api := dynamic.ResourceInterface(s.dynamic.Resource(mapping.Resource))
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			api = s.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		if _, err := api.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object), document)
		if o.GetKind() != "" {
			list = append(list, o)
		}
	}
	return list
}

// install installs a chart's objects and CRDs in a namespace, which it creates.
func (s *linkedCluster) install(t *testing.T, archive, name, namespace string, values map[string]any) {
	t.Helper()
	_, err := s.api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	var c *chart.Chart
	c, err = loader.Load(archive)
	require.NoError(t, err)
	for _, crd := range c.CRDObjects() {
		require.NoError(t, s.apply(t, objects(t, string(crd.File.Data))...))
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: name, Namespace: namespace}, chartutil.DefaultCapabilities)
	require.NoError(t, err)
	files, err := engine.Render(c, all)
	require.NoError(t, err)
	var made []*unstructured.Unstructured
	for path, text := range files {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		for _, o := range objects(t, text) {
			if o.GetNamespace() == "" {
				o.SetNamespace(namespace)
			}
			if o.GetKind() == "Namespace" { // others are in it
				require.NoError(t, s.apply(t, o), path)
				continue
			}
			made = append(made, o)
		}
	}
	require.NoError(t, s.apply(t, made...))
}

func (s *linkedCluster) available(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		s.eventually(t, name+" is available", func() bool {
			d, err := s.api.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && d.Status.AvailableReplicas == 1
		})
	}
}

// condition returns the message of an object's condition Ready, and its status.
func (s *linkedCluster) condition(t *testing.T, resource schema.GroupVersionResource, namespace, name string) (status, message string) {
	t.Helper()
	o, err := s.dynamic.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == "Ready" {
			status, _ = m["status"].(string)
			message, _ = m["message"].(string)
		}
	}
	return status, message
}

// data is the folder of a tool's data.
func data(t *testing.T, tool string) string {
	t.Helper()
	cache, err := tools.DefaultCache()
	require.NoError(t, err)
	dir, err := tools.DataDir(t.Context(), cache, tool)
	if err != nil {
		t.Skip(err)
	}
	return dir
}

const stores = `apiVersion: v1
kind: Secret
metadata: {name: good, namespace: external-secrets}
stringData: {token: TOKEN}
---
apiVersion: v1
kind: Secret
metadata: {name: bad, namespace: external-secrets}
stringData: {token: a.b.c}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: good}
spec: {provider: {onepassword: {connectHost: "http://onepassword-connect.onepassword.svc.cluster.local:8080", vaults: {lab: 1},
  auth: {secretRef: {connectTokenSecretRef: {name: good, namespace: external-secrets, key: token}}}}}}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: bad}
spec: {provider: {onepassword: {connectHost: "http://onepassword-connect.onepassword.svc.cluster.local:8080", vaults: {lab: 1},
  auth: {secretRef: {connectTokenSecretRef: {name: bad, namespace: external-secrets, key: token}}}}}}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: none}
spec: {provider: {onepassword: {connectHost: "http://onepassword-connect.onepassword.svc.cluster.local:8080", vaults: {missing: 1},
  auth: {secretRef: {connectTokenSecretRef: {name: good, namespace: external-secrets, key: token}}}}}}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: probe, namespace: external-secrets}
spec: {refreshInterval: 1h, secretStoreRef: {kind: ClusterSecretStore, name: good}, target: {name: probe},
  data: [{secretKey: password, remoteRef: {key: probe, property: password}}]}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: nothing, namespace: external-secrets}
spec: {refreshInterval: 1h, secretStoreRef: {kind: ClusterSecretStore, name: good}, target: {name: nothing},
  data: [{secretKey: password, remoteRef: {key: no such item}}]}
`

// The webhook refuses this one: two vaults have the same number.
const invalid = `apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: invalid}
spec: {provider: {onepassword: {connectHost: "http://x", vaults: {a: 1, b: 1},
  auth: {secretRef: {connectTokenSecretRef: {name: good, namespace: external-secrets, key: token}}}}}}
`

func TestExternalSecrets_SyncsFromTheSimulatedConnect(t *testing.T) {
	kubetest.Binary(t, "external-secrets")
	if !inNamespaces(t) {
		return
	}
	s := startSecrets(t)
	bundle, err := os.ReadFile(filepath.Join(data(t, "external-secrets"), "crds", "bundle.yaml"))
	require.NoError(t, err)
	require.NoError(t, s.apply(t, objects(t, string(bundle))...))
	archive, err := charts.Pack("connect", t.TempDir())
	require.NoError(t, err)
	s.install(t, archive, "connect", "onepassword", map[string]any{"connect": map[string]any{"credentials": string(s.account.Credentials())}})
	archive, err = charts.ExternalSecrets(t.TempDir(), filepath.Join(data(t, "external-secrets"), "chart"), "0.20.4", "0.20.4")
	require.NoError(t, err)
	s.install(t, archive, "external-secrets", "external-secrets", map[string]any{"installCRDs": false})
	s.available(t, "onepassword", "onepassword-connect")
	s.available(t, "external-secrets", "external-secrets", "external-secrets-cert-controller", "external-secrets-webhook")

	s.eventually(t, "the webhook refuses", func() bool {
		err = s.apply(t, objects(t, invalid)...)
		return err != nil && strings.Contains(err.Error(), "vault order numbers must be unique")
	})
	token, err := s.account.Token(time.Now().Add(time.Hour), "lab")
	require.NoError(t, err)
	require.NoError(t, s.apply(t, objects(t, strings.Replace(stores, "TOKEN", token, 1))...))
	s.eventually(t, "the ExternalSecret syncs", func() bool {
		secret, err := s.api.CoreV1().Secrets("external-secrets").Get(t.Context(), "probe", metav1.GetOptions{})
		return err == nil && string(secret.Data["password"]) == "lab-probe"
	})
	clusterStores := schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "clustersecretstores"}
	for name, want := range map[string]string{"good": "True", "bad": "False", "none": "False"} {
		s.eventually(t, "store "+name, func() bool { status, _ := s.condition(t, clusterStores, "", name); return status == want })
	}
	// The conditions say only that something failed. The events say what.
	s.warned(t, "bad", "status 401: Invalid bearer token")
	s.warned(t, "none", `Found 0 vaults with title "missing"`)
	s.warned(t, "nothing", "key not found in 1Password Vaults: no such item")
	externalSecrets := schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets"}
	for name, f := range map[string]fault.Kind{"connection refused": fault.ConnectRefused, "status 500: Internal Server Error": fault.Connect5xx} {
		require.NoError(t, s.faults.On(fault.Fault{Kind: f, Target: "infra"}))
		require.NoError(t, s.apply(t, objects(t, strings.ReplaceAll(late, "NAME", string(f)))...))
		s.warned(t, string(f), name)
		s.faults.Clear()
		s.eventually(t, "the ExternalSecret syncs after "+string(f), func() bool {
			status, _ := s.condition(t, externalSecrets, "external-secrets", string(f))
			return status == "True"
		})
	}
}

// warned waits for a warning about an object.
func (s *linkedCluster) warned(t *testing.T, name, words string) {
	t.Helper()
	s.eventually(t, name+": "+words, func() bool {
		list, err := s.api.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.name=" + name})
		return err == nil && slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, words) })
	})
}

// late is an ExternalSecret that is created under a fault.
const late = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: NAME, namespace: external-secrets}
spec: {refreshInterval: 1h, secretStoreRef: {kind: ClusterSecretStore, name: good}, target: {name: NAME},
  data: [{secretKey: password, remoteRef: {key: probe, property: password}}]}
`

func TestSealedSecrets_UsesTheKeyThatExistsUnlessItIsLate(t *testing.T) {
	kubetest.Binary(t, "sealed-secrets-controller")
	if !inNamespaces(t) {
		return
	}
	s := startSecrets(t)
	ctx, ns := t.Context(), "sealed-secrets"
	_, err := s.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	require.NoError(t, err)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ours"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	_, err = s.api.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{Type: corev1.SecretTypeTLS,
		ObjectMeta: metav1.ObjectMeta{Name: "ours", Labels: map[string]string{"sealedsecrets.bitnami.com/sealed-secrets-key": "active"}},
		Data: map[string][]byte{"tls.crt": []byte(certificate),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})}}, metav1.CreateOptions{})
	require.NoError(t, err)
	archive, err := charts.Own(t.TempDir(), filepath.Join(data(t, "sealed-secrets-controller"), "chart"), "")
	require.NoError(t, err)
	s.install(t, archive, "sealed-secrets", ns, nil)
	s.available(t, ns, "sealed-secrets")
	require.Equal(t, certificate, s.certificate(t, ns))
	sealed := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
		"metadata": map[string]any{"name": "one", "namespace": "default"},
		"spec":     map[string]any{"encryptedData": map[string]any{"password": seal(t, &key.PublicKey, "default/one", "s3cret")}}}}
	require.NoError(t, s.apply(t, sealed))
	s.eventually(t, "the secret is unsealed", func() bool {
		secret, err := s.api.CoreV1().Secrets("default").Get(ctx, "one", metav1.GetOptions{})
		return err == nil && string(secret.Data["password"]) == "s3cret"
	})

	require.NoError(t, s.faults.On(fault.Fault{Kind: fault.SealedKeyLate, Target: "infra"}))
	restart := func() {
		t.Helper()
		require.NoError(t, s.api.CoreV1().Pods(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=sealed-secrets"}))
		s.eventually(t, "the old pod is gone", func() bool {
			d, err := s.api.AppsV1().Deployments(ns).Get(ctx, "sealed-secrets", metav1.GetOptions{})
			return err == nil && d.Status.AvailableReplicas == 0
		})
		s.available(t, ns, "sealed-secrets")
	}
	restart()
	require.NotEqual(t, certificate, s.certificate(t, ns), "it has made a key of its own")
	s.eventually(t, "our key is back", func() bool {
		list, err := s.api.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{LabelSelector: "sealedsecrets.bitnami.com/sealed-secrets-key=active"})
		return err == nil && len(list.Items) == 2
	})
	s.faults.Clear()
}

// certificate is the certificate that the controller hands out.
func (s *linkedCluster) certificate(t *testing.T, namespace string) string {
	t.Helper()
	pods, err := s.api.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	require.NoError(t, err)
	var problems []error
	for _, p := range pods.Items {
		answer, err := http.Get("http://" + p.Status.PodIP + ":8080/v1/cert.pem")
		if err != nil {
			problems = append(problems, err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return string(text)
	}
	t.Fatal("no controller answers: ", errors.Join(problems...))
	return ""
}

// seal encrypts a value as kubeseal does, for one name in one namespace.
func seal(t *testing.T, key *rsa.PublicKey, label, value string) string {
	t.Helper()
	session := make([]byte, 32)
	_, err := rand.Read(session)
	require.NoError(t, err)
	wrapped, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, key, session, []byte(label))
	require.NoError(t, err)
	block, err := aes.NewCipher(session)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	out := binary.BigEndian.AppendUint16(nil, uint16(len(wrapped)))
	return base64.StdEncoding.EncodeToString(gcm.Seal(append(out, wrapped...), make([]byte, gcm.NonceSize()), []byte(value), nil))
}
