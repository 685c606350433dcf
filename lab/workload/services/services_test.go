package services

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/workloadtest"
)

const namespace = workloadtest.Namespace

func dnsPod(t *testing.T, client *kubefake.Clientset) (workload.Container, *workloadtest.Log) {
	t.Helper()
	c := workloadtest.Cluster()
	c.Client = client
	log := &workloadtest.Log{}
	pod := workloadtest.Container(c, "cp-1", "coredns", "coredns/coredns:1.13.1")
	pod.Log = log
	pod.Pod.Labels = map[string]string{"k8s-app": "kube-dns"}
	pod.Pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}}}}}
	return pod, log
}

func serviceAt(namespace, name, ip string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Selector: selector},
	}
}

func TestCoreDNS_IsReadyOnceItWouldServeTheCluster(t *testing.T) {
	t.Parallel()
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: namespace},
		Data:       map[string]string{"Corefile": ".:53 {\n  ready\n}\n"},
	}
	client := kubefake.NewClientset(m, serviceAt("default", "kubernetes", "10.245.0.1", nil))
	var mu sync.Mutex
	allowed := false
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		review.Status.Allowed = allowed && review.Spec.User == "system:serviceaccount:flux-system:default"
		return true, review, nil
	})
	pod, log := dnsPod(t, client)
	i, err := StartCoreDNS(t.Context(), pod)
	require.NoError(t, err)
	for _, want := range []string{
		"Corefile of ConfigMap coredns has no plugin kubernetes", `cannot list resource "endpointslices" in API group "discovery.k8s.io"`,
		"no Service in flux-system has the address 10.245.0.10",
	} {
		require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, time.Minute, time.Millisecond, want)
	}
	require.False(t, i.Ready())

	m.Data["Corefile"] = ".:53 {\n  ready\n  kubernetes cluster.local {\n  }\n}\n"
	_, err = client.CoreV1().ConfigMaps(namespace).Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	mu.Lock()
	allowed = true
	mu.Unlock()
	s := serviceAt(namespace, "kube-dns", "10.245.0.10", map[string]string{"k8s-app": "other"})
	_, err = client.CoreV1().Services(namespace).Create(t.Context(), s, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "does not select this pod") }, time.Minute, time.Millisecond)
	require.False(t, i.Ready())

	s.Spec.Selector["k8s-app"] = "kube-dns"
	_, err = client.CoreV1().Services(namespace).Update(t.Context(), s, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return port
}

// The API server trusts the CA that cainjector has written, which is the webhook's.
func TestCertManager_WebhookIsTrustedByWhatCAInjectorPutsIn(t *testing.T) {
	t.Parallel()
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "cert-manager-webhook", Annotations: map[string]string{injectFrom: namespace + "/webhook-ca"}},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "webhook.cert-manager.io"}},
	}
	foreign := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "other"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "x"}},
	}
	client := kubefake.NewClientset(webhook, foreign)
	c := workloadtest.Cluster()
	c.Client = client
	port := freePort(t)
	server := workloadtest.Container(c, "cp-1", "cert-manager-webhook", "quay.io/jetstack/cert-manager-webhook:v1.21.2")
	server.PodIP = netip.MustParseAddr("127.0.0.1")
	server.Spec.Env = []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
	}}}
	server.Spec.Args = []string{
		"--secure-port=" + port,
		"--dynamic-serving-ca-secret-namespace=$(POD_NAMESPACE)", "--dynamic-serving-ca-secret-name=webhook-ca",
	}
	i, err := StartCertManagerWebhook(t.Context(), server)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	injector, err := StartCertManagerCAInjector(t.Context(), workloadtest.Container(c, "cp-1", "cert-manager-cainjector", "x"))
	require.NoError(t, err)
	require.Eventually(t, injector.Ready, time.Minute, time.Millisecond)
	var bundle []byte
	require.Eventually(t, func() bool {
		got, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), webhook.Name, metav1.GetOptions{})
		if err == nil {
			bundle = got.Webhooks[0].ClientConfig.CABundle
		}
		return len(bundle) > 0
	}, time.Minute, time.Millisecond)
	other, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "other", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, other.Webhooks[0].ClientConfig.CABundle, "it did not ask")

	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(bundle))
	https := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: "cert-manager-webhook.cert-manager.svc",
	}}}
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create,
		Resource: metav1.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificaterequests"},
		UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:cert-manager:cert-manager"},
	}}
	for path, patched := range map[string]bool{"validate": false, "mutate": true} {
		body, err := json.Marshal(review)
		require.NoError(t, err)
		answer, err := https.Post(fmt.Sprintf("https://127.0.0.1:%s/%s", port, path), "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		var got admissionv1.AdmissionReview
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&got))
		require.NoError(t, answer.Body.Close())
		require.True(t, got.Response.Allowed)
		require.EqualValues(t, "u", got.Response.UID)
		require.Equal(t, patched, strings.Contains(string(got.Response.Patch), "system:serviceaccount:cert-manager:cert-manager"))
	}
	i.Stop(t.Context(), time.Second)
	require.Eventually(t, func() bool {
		_, err := net.Dial("tcp", "127.0.0.1:"+port)
		return err != nil
	}, time.Minute, time.Millisecond, "nobody listens once the pod is gone")
}

func TestRegistry_KnowsWhoListens(t *testing.T) {
	t.Parallel()
	r := workload.Registry{Listens: []string{"cert-manager-webhook"}}
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	}
	require.True(t, r.Listening(pod("quay.io/jetstack/cert-manager-webhook:v1")))
	require.False(t, r.Listening(pod("quay.io/jetstack/cert-manager-cainjector:v1")))
}
