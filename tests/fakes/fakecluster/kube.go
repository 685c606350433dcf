package fakecluster

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

const token = "fake-token"

// The versions of a fake cluster.
const (
	KubernetesVersion = "v1.35.8"
	TalosVersion      = "v1.12.7"
)

// Kube is a Kubernetes API server.
type Kube struct {
	Config string // kubeconfig

	authority []byte

	mu       sync.Mutex
	server   *httptest.Server
	version  int
	objects  map[string]map[string]*unstructured.Unstructured // by resource path, then namespace/name
	watchers map[chan watchEvent]string                       // their resource path
	notReady string
	away     bool
	exec     func(pod string, command []string) (string, error)
	logs     map[string]string // by pod
	refusals map[string]string // errors for dry runs, by resource path; without one a dry run succeeds
	failing  func(request string) bool
	creates  map[string]func(*unstructured.Unstructured) // what follows a creation, by resource path; without one it is refused
	deletes  map[string]func(namespace, name string)     // what follows a deletion, by resource path; without one it is refused
	patches  map[string]func(*unstructured.Unstructured) // what follows a merge patch, by resource path; without one it is refused

	kinds map[string]map[string]string // by version, then by resource

	requests map[string]int // by "VERB resource", as in "GET api/v1/nodes" or "GET exec cilium-health status -o json"
}

type watchEvent struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// NewKube starts a server that runs until the test ends.
func NewKube(t testing.TB) *Kube {
	t.Helper()
	id := newIdentity(t)
	kube := &Kube{authority: id.cert, objects: map[string]map[string]*unstructured.Unstructured{}, watchers: map[chan watchEvent]string{},
		logs: map[string]string{}, refusals: map[string]string{}, requests: map[string]int{}}
	kube.server = httptest.NewUnstartedServer(http.HandlerFunc(kube.serve))
	kube.server.TLS = &tls.Config{Certificates: []tls.Certificate{id.pair}, MinVersion: tls.VersionTLS12}
	kube.server.Config.ErrorLog = log.New(io.Discard, "", 0) // some tests provoke refused handshakes
	kube.server.StartTLS()
	t.Cleanup(func() {
		kube.GoAway()
		kube.server.Close()
	})
	kube.Config = kube.Kubeconfig(t, id.cert, token)
	return kube
}

// Kubeconfig returns a kubeconfig with that authority and token.
func (k *Kube) Kubeconfig(t testing.TB, authority []byte, token string) string {
	t.Helper()
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "fake",
		"clusters": []any{map[string]any{"name": "fake", "cluster": map[string]any{
			"server": k.server.URL, "certificate-authority-data": base64.StdEncoding.EncodeToString(authority)}}},
		"users":    []any{map[string]any{"name": "fake", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "fake", "context": map[string]any{"cluster": "fake", "user": "fake"}}},
	})
	require.NoError(t, err)
	return string(config)
}

// Authority returns the certificate that clients must trust, PEM.
func (k *Kube) Authority() []byte { return k.authority }

// OtherAuthority returns a certificate that did not sign the server's.
func OtherAuthority(t testing.TB) []byte { return newIdentity(t).cert }

// Serves makes the server serve a resource, e.g. "apis/apps/v1/daemonsets". Before, it answers NotFound.
func (k *Kube) Serves(resources ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, resource := range resources {
		if k.objects[resource] == nil {
			k.objects[resource] = map[string]*unstructured.Unstructured{}
		}
	}
}

// Discovers makes the server serve the kinds of a group and version, e.g. "apis/apps/v1", by the names of their resources. All have
// namespaces.
func (k *Kube) Discovers(version string, kinds map[string]string) {
	for resource := range kinds {
		k.Serves(version + "/" + resource)
	}
	k.with(func() {
		if k.kinds == nil {
			k.kinds = map[string]map[string]string{}
		}
		k.kinds[version] = kinds
	})
}

// Put adds or replaces an object, given in YAML.
func (k *Kube) Put(t testing.TB, resource, object string) {
	t.Helper()
	content := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(object), &content))
	k.Serves(resource)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version++
	u := &unstructured.Unstructured{Object: content}
	u.SetResourceVersion(strconv.Itoa(k.version))
	key := u.GetNamespace() + "/" + u.GetName()
	kind := "ADDED"
	if k.objects[resource][key] != nil {
		kind = "MODIFIED"
	}
	k.objects[resource][key] = u
	k.announce(resource, kind, u)
}

// Delete removes an object.
func (k *Kube) Delete(resource, namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if u := k.objects[resource][namespace+"/"+name]; u != nil {
		delete(k.objects[resource], namespace+"/"+name)
		k.announce(resource, "DELETED", u)
	}
}

func (k *Kube) announce(resource, kind string, u *unstructured.Unstructured) {
	for watcher, of := range k.watchers {
		if of == resource {
			watcher <- watchEvent{kind, u.Object}
		}
	}
}

// NotReady makes the check of that name in /readyz fail; "" makes all pass.
func (k *Kube) NotReady(check string) { k.with(func() { k.notReady = check }) }

// GoAway closes all connections, and each new connection at its first request, until ComeBack.
func (k *Kube) GoAway() {
	k.with(func() { k.away = true })
	k.server.CloseClientConnections()
}

// ComeBack ends GoAway.
func (k *Kube) ComeBack() { k.with(func() { k.away = false }) }

// OnExec sets the function that answers commands in containers.
func (k *Kube) OnExec(answer func(pod string, command []string) (string, error)) {
	k.with(func() { k.exec = answer })
}

// Log sets the log of a pod's containers.
func (k *Kube) Log(pod, text string) { k.with(func() { k.logs[pod] = text }) }

// Refuse makes dry runs of a resource fail with this error, as a webhook does; "" makes them succeed.
func (k *Kube) Refuse(resource, why string) {
	k.Serves(resource)
	k.with(func() { k.refusals[resource] = why })
}

// Accepts makes the server create and delete objects of a resource, and calls the functions after each.
func (k *Kube) Accepts(resource string, created func(*unstructured.Unstructured), deleted func(namespace, name string)) {
	k.Serves(resource)
	k.with(func() {
		if k.creates == nil {
			k.creates, k.deletes = map[string]func(*unstructured.Unstructured){}, map[string]func(string, string){}
		}
		k.creates[resource], k.deletes[resource] = created, deleted
	})
}

// Failing makes the server answer requests with an internal error while the function returns true. It is called with the request as in
// Requests, and WATCH as the verb of a watch; nil makes all succeed.
func (k *Kube) Failing(failing func(request string) bool) { k.with(func() { k.failing = failing }) }

// Requests returns the number of requests of each kind.
func (k *Kube) Requests() map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.requests)
}

func (k *Kube) with(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *Kube) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	away, notReady := k.away, k.notReady
	path := strings.Trim(r.URL.Path, "/")
	request := requested(path, r)
	k.requests[r.Method+" "+request]++
	if request = r.Method + " " + request; r.URL.Query().Get("watch") == "true" {
		request = "WATCH" + strings.TrimPrefix(request, r.Method)
	}
	kinds := k.kinds[path]
	fails := k.failing != nil && k.failing(request)
	k.mu.Unlock()
	switch {
	case away:
		panic(http.ErrAbortHandler)
	case fails:
		kubeapitest.Refuse(w, http.StatusInternalServerError, "InternalError")
	case r.Header.Get("Authorization") != "Bearer "+token:
		kubeapitest.Refuse(w, http.StatusUnauthorized, "Unauthorized")
	case path == "readyz" && notReady != "":
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "[+]ping ok\n[-]%s failed: reason withheld\nreadyz check failed\n", notReady)
	case path == "readyz":
		fmt.Fprint(w, "ok")
	case kinds != nil:
		serveKinds(w, path, kinds)
	case path == "version":
		fmt.Fprintf(w, `{"gitVersion":%q}`, KubernetesVersion)
	case strings.HasSuffix(path, "/exec"):
		k.serveExec(w, r)
	case strings.HasSuffix(path, "/log"):
		parts := strings.Split(path, "/")
		k.with(func() { fmt.Fprint(w, k.logs[parts[len(parts)-2]]) })
	default:
		k.serveObjects(w, r, path)
	}
}

// serveKinds answers what a version of a group has.
func serveKinds(w http.ResponseWriter, version string, kinds map[string]string) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: strings.TrimPrefix(version, "apis/")}
	for resource, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: true})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// requested returns the resource of a request, without names of objects.
func requested(path string, r *http.Request) string {
	switch {
	case strings.HasSuffix(path, "/exec"):
		return "exec " + strings.Join(r.URL.Query()["command"], " ")
	case strings.HasSuffix(path, "/log"):
		return "log"
	}
	if before, after, scoped := strings.Cut(path, "/namespaces/"); scoped {
		_, resource, _ := strings.Cut(after, "/")
		path = before + "/" + resource
	}
	if r.Method == http.MethodPatch {
		path, _, _ = cutLast(path)
	}
	return path
}

func (k *Kube) serveObjects(w http.ResponseWriter, r *http.Request, path string) {
	namespace := ""
	if before, after, scoped := strings.Cut(path, "/namespaces/"); scoped {
		var resource string
		namespace, resource, _ = strings.Cut(after, "/")
		path = before + "/" + resource
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		kubeapitest.Refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	field, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		kubeapitest.Refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	selects := func(u *unstructured.Unstructured) bool {
		for _, requirement := range field.Requirements() {
			if value, _, _ := unstructured.NestedString(u.Object, strings.Split(requirement.Field, ".")...); value != requirement.Value {
				return false
			}
		}
		return (namespace == "" || u.GetNamespace() == namespace) && selector.Matches(labels.Set(u.GetLabels()))
	}
	k.mu.Lock()
	if resource, name, named := cutLast(path); r.Method == http.MethodDelete && named && k.deletes[resource] != nil {
		k.mu.Unlock()
		k.serveDelete(w, resource, namespace, name)
		return
	}
	if resource, name, named := cutLast(path); r.Method == http.MethodPatch && named && k.patches[resource] != nil {
		k.mu.Unlock()
		k.servePatch(w, r, resource, namespace+"/"+name)
		return
	}
	known, served := k.objects[path]
	if !served {
		k.mu.Unlock()
		kubeapitest.Refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	if r.Method == http.MethodPost {
		why, created := k.refusals[path], k.creates[path]
		k.mu.Unlock()
		if created != nil && r.URL.Query().Get("dryRun") == "" {
			k.serveCreate(w, r, path, created)
			return
		}
		answerDryRun(w, r, why)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "true" {
		since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
		events := make(chan watchEvent, 1000)
		for _, u := range known {
			if version, _ := strconv.Atoi(u.GetResourceVersion()); version > since {
				events <- watchEvent{"ADDED", u.Object}
			}
		}
		k.watchers[events] = path
		k.mu.Unlock()
		defer k.with(func() { delete(k.watchers, events) })
		stream(w, r, events, selects)
		return
	}
	items := []any{}
	for _, u := range known {
		if selects(u) {
			items = append(items, u.Object)
		}
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(k.version)},
		"items": items}
	text, err := json.Marshal(list)
	k.mu.Unlock()
	if err == nil {
		_, _ = w.Write(text)
	}
}

func stream(w http.ResponseWriter, r *http.Request, events chan watchEvent, selects func(*unstructured.Unstructured) bool) {
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	_ = flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			if !selects(&unstructured.Unstructured{Object: event.Object}) {
				continue
			}
			if json.NewEncoder(w).Encode(event) != nil || flush() != nil {
				return
			}
		}
	}
}

func (k *Kube) serveExec(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	answer := k.exec
	k.mu.Unlock()
	parts := strings.Split(r.URL.Path, "/")
	if answer == nil || len(parts) < 2 {
		kubeapitest.Refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}, CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	stdout, failure := answer(parts[len(parts)-2], r.URL.Query()["command"])
	result := `{"metadata":{},"status":"Success"}`
	if failure != nil {
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{2}, failure.Error()...))
		result = `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with exit code 1",` +
			`"details":{"causes":[{"reason":"ExitCode","message":"1"}]}}`
	}
	_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{1}, stdout...))
	_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{3}, result...))
	_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}

func cutLast(path string) (before, last string, found bool) {
	at := strings.LastIndex(path, "/")
	if at < 0 {
		return path, "", false
	}
	return path[:at], path[at+1:], true
}

// serveCreate adds an object.
func (k *Kube) serveCreate(w http.ResponseWriter, r *http.Request, resource string, created func(*unstructured.Unstructured)) {
	text, err := io.ReadAll(r.Body)
	object := new(unstructured.Unstructured)
	if err != nil || object.UnmarshalJSON(text) != nil {
		kubeapitest.Refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	key := object.GetNamespace() + "/" + object.GetName()
	k.mu.Lock()
	if k.objects[resource][key] != nil {
		k.mu.Unlock()
		kubeapitest.Refuse(w, http.StatusConflict, "AlreadyExists")
		return
	}
	k.version++
	object.SetResourceVersion(strconv.Itoa(k.version))
	k.objects[resource][key] = object
	k.announce(resource, "ADDED", object)
	k.mu.Unlock()
	created(object)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(text)
}

// serveDelete removes an object.
func (k *Kube) serveDelete(w http.ResponseWriter, resource, namespace, name string) {
	k.mu.Lock()
	known, deleted := k.objects[resource][namespace+"/"+name] != nil, k.deletes[resource]
	k.mu.Unlock()
	if !known {
		kubeapitest.Refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	k.Delete(resource, namespace, name)
	deleted(namespace, name)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)
}

// answerDryRun returns the object of a dry run. Other requests to create an object are refused: the probe must not create any.
func answerDryRun(w http.ResponseWriter, r *http.Request, why string) {
	switch {
	case r.URL.Query().Get("dryRun") != "All":
		kubeapitest.Refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	case why != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"InternalError","message":%q,"code":500}`,
			why)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}
}
