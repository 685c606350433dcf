package services

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/connect"
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/workloadtest"
)

// connectPod is the container of the API in a pod as the chart makes it. The Secret has the given content.
func connectPod(t *testing.T, credentials []byte, port string) (workload.Container, *workloadtest.Log) {
	t.Helper()
	c := workloadtest.Cluster()
	c.Client = fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "op-credentials", Namespace: namespace},
		Data: map[string][]byte{"1password-credentials.json": credentials}})
	api := workloadtest.Container(c, "cp-1", "connect-api", "docker.io/1password/connect-api:1.8.2")
	api.PodIP = netip.MustParseAddr("127.0.0.1")
	api.Spec.Env = []corev1.EnvVar{{Name: "OP_SESSION", Value: "/home/opuser/.op/1password-credentials.json"}, {Name: "OP_HTTP_PORT", Value: port}}
	api.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "credentials", MountPath: "/home/opuser/.op/1password-credentials.json", SubPath: "1password-credentials.json"}}
	api.Pod.Spec.Volumes = []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "op-credentials",
		Items: []corev1.KeyToPath{{Key: "1password-credentials.json", Path: "1password-credentials.json"}}}}}}
	log := &workloadtest.Log{}
	api.Log = log
	return api, log
}

func account(t *testing.T) *connect.Account {
	t.Helper()
	a, err := connect.OpenAccount(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, a.Require("lab", "probe", map[string]string{"password": "x"}))
	return a
}

func TestConnect_ServesWithTheCredentialsOfItsPodUntilItStops(t *testing.T) {
	o, port := &Connect{Account: account(t)}, freePort(t)
	c, _ := connectPod(t, o.Account.Credentials(), port)
	i, err := o.StartAPI(t.Context(), c)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	token, err := o.Account.Token(time.Time{}, "lab")
	require.NoError(t, err)
	request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+port+"/v1/vaults", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(body), `"name":"lab"`)

	sync := c
	other := freePort(t)
	sync.Spec.Env = []corev1.EnvVar{c.Spec.Env[0], {Name: "OP_HTTP_PORT", Value: other}}
	s, err := o.StartSync(t.Context(), sync)
	require.NoError(t, err)
	require.Eventually(t, s.Ready, time.Minute, time.Millisecond)
	answer, err = http.Get("http://127.0.0.1:" + other + "/health")
	require.NoError(t, err)
	body, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(body), `"service":"sync","status":"ACTIVE"`, "the containers of a pod share their data")
	i.Stop(t.Context(), time.Second)
	s.Stop(t.Context(), time.Second)
	require.Eventually(t, func() bool { return !answers(port) && !answers(other) }, time.Minute, time.Millisecond)
}

func answers(port string) bool {
	connection, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

func TestConnect_IsNotReadyWithCredentialsThatAreWrong(t *testing.T) {
	o := &Connect{Account: account(t)}
	right := o.Account.Credentials()
	encoded := []byte(base64.StdEncoding.EncodeToString(right))
	for want, try := range map[string]struct {
		content []byte
		env     string // instead of the file
	}{
		"LoadLocalAuthV2 failed to Unmarshal":         {content: encoded}, // encoded once too often
		"failed to credentialsDataFromBase64":         {env: string(right)},
		"credentials file is not version 2":           {content: []byte(strings.Replace(string(right), `"version":"2"`, `"version":"1"`, 1))},
		"Authentication failed, invalid bearer token": {content: account(t).Credentials()},
		"OP_SESSION is not set":                       {content: right, env: "$(NONE)"},
		"/elsewhere.json: no such file or directory":  {content: right, env: "/elsewhere.json"},
	} {
		port := freePort(t)
		c, log := connectPod(t, try.content, port)
		switch try.env {
		case "":
		case "$(NONE)":
			c.Spec.Env = c.Spec.Env[1:]
		default:
			c.Spec.Env[0].Value = try.env
		}
		i, err := o.StartAPI(t.Context(), c)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, time.Minute, time.Millisecond, want)
		require.False(t, i.Ready(), want)
		require.False(t, answers(port), want)
		require.Contains(t, log.String(), "unable to get credentials and initialize API, retrying in 30s")
		i.Exit(0)
	}
}

func TestConnect_TakesCredentialsFromItsEnvironment(t *testing.T) {
	o, port := &Connect{Account: account(t)}, freePort(t)
	c, _ := connectPod(t, []byte(base64.StdEncoding.EncodeToString(o.Account.Credentials())), port)
	c.Spec.Env[0] = corev1.EnvVar{Name: "OP_SESSION", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "op-credentials"}, Key: "1password-credentials.json"}}}
	i, err := o.StartAPI(t.Context(), c)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	i.Stop(t.Context(), time.Second)
}

func TestFaults_ConnectRefusedClosesThePortUntilItIsOff(t *testing.T) {
	o, port := &Connect{Account: account(t)}, freePort(t)
	c, _ := connectPod(t, o.Account.Credentials(), port)
	i, err := o.StartAPI(t.Context(), c)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	require.NoError(t, c.Cluster.Faults.On(fault.Fault{Kind: fault.ConnectRefused, Target: "infra"}))
	require.Eventually(t, func() bool { return !i.Ready() && !answers(port) }, time.Minute, time.Millisecond)
	c.Cluster.Faults.Clear()
	require.Eventually(t, func() bool { return i.Ready() && answers(port) }, time.Minute, time.Millisecond)
	i.Stop(t.Context(), time.Second)
}

func TestServiceNames_AreThoseOfReadyPods(t *testing.T) {
	c := workloadtest.Container(workloadtest.Cluster(), "cp-1", "x", "x")
	service := func(namespace, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	yes, no := true, false
	c.Cluster.Client = fake.NewClientset(service(namespace, "near"), service("other", "far"), service("other", "down"),
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "far-1", Labels: map[string]string{discoveryv1.LabelServiceName: "far"}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.7"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}},
				{Addresses: []string{"10.244.0.6"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}}}})
	text, err := workload.ServiceNames(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "10.244.0.7 far.other.svc.cluster.local far.other.svc far.other\n127.0.0.1 localhost\n"+
		workload.NoBackend+" down.other.svc.cluster.local down.other.svc down.other\n"+
		fmt.Sprintf("%s near.%[2]s.svc.cluster.local near.%[2]s.svc near.%[2]s near\n", workload.NoBackend, namespace), string(text))
}

func TestFaults_SealedKeyLateHidesKeysFromAControllerThatStarts(t *testing.T) {
	c := workloadtest.Container(workloadtest.Cluster(), "cp-1", "controller", "docker.io/bitnami/sealed-secrets-controller:0.39.1")
	labels := map[string]string{"sealedsecrets.bitnami.com/sealed-secrets-key": "active"}
	ours := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ours", Namespace: namespace, Labels: labels}, Data: map[string][]byte{"tls.key": []byte("k")}}
	c.Cluster.Client = fake.NewClientset(ours)
	require.False(t, sealingKeyLate(c))
	require.NoError(t, c.Cluster.Faults.On(fault.Fault{Kind: fault.SealedKeyLate, Target: "infra"}))
	require.True(t, sealingKeyLate(c))
	secrets := c.Cluster.Client.CoreV1().Secrets(namespace)
	keys, err := takeKeys(t.Context(), c)
	require.NoError(t, err)
	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	i, _ := workload.NewInstance(t.Context())
	returned := make(chan struct{})
	go func() {
		awaitOwnKey(t.Context(), c, i)
		returnKeys(c, keys)
		close(returned)
	}()
	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sealed-secrets-keyx2x", GenerateName: "sealed-secrets-key", Labels: labels}}, metav1.CreateOptions{})
	require.NoError(t, err)
	select {
	case <-returned:
	case <-time.After(5 * time.Second):
		t.Fatal("the keys are not back")
	}
	got, err := secrets.Get(t.Context(), "ours", metav1.GetOptions{})
	require.NoError(t, err)
	want, err := json.Marshal(ours.Data)
	require.NoError(t, err)
	have, err := json.Marshal(got.Data)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(have))
	require.Equal(t, labels, got.Labels)
	c.Cluster.Faults.Clear()
	require.False(t, sealingKeyLate(c))
}
