package kubelet

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// How long a kubelet believes an answer of the API server, by default.
const (
	tokenTTL     = 2 * time.Minute
	allowedTTL   = 5 * time.Minute
	forbiddenTTL = 30 * time.Second
)

// access decides who may use a kubelet's API, as a kubelet with Talos's configuration does: client certificates of the
// cluster CA, and tokens and permissions by asking the API server. Anonymous requests are refused.
type access struct {
	client  kubernetes.Interface
	clients *x509.CertPool
	node    string

	mu     sync.Mutex
	tokens map[string]answer[authenticationv1.UserInfo]
	rights map[string]answer[bool]
}

// answer is an answer of the API server.
type answer[T any] struct {
	value T
	until time.Time
}

func newAccess(client kubernetes.Interface, ca []byte, node string) *access {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &access{client: client, clients: pool, node: node, tokens: map[string]answer[authenticationv1.UserInfo]{}, rights: map[string]answer[bool]{}}
}

// protect lets those through who may.
func (a *access) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := a.user(r)
		if !ok {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		verb, subresources := verbs[r.Method], subresources(r.URL.Path)
		for _, s := range subresources {
			allowed, err := a.may(r.Context(), user, verb, s)
			if err != nil {
				http.Error(w, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)", user.Username, verb, s), http.StatusInternalServerError)
				return
			}
			if allowed {
				next.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", user.Username, verb, subresources), http.StatusForbidden)
	})
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// subresources are the subresources of nodes of which one must be allowed, by the kubelet's table.
func subresources(path string) []string {
	under := func(parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }
	switch {
	case under("/stats"):
		return []string{"stats"}
	case under("/metrics"):
		return []string{"metrics"}
	case under("/logs"):
		return []string{"log"}
	case under("/checkpoint"):
		return []string{"checkpoint"}
	case under("/pods"), under("/runningpods"):
		return []string{"pods", "proxy"}
	case under("/healthz"):
		return []string{"healthz", "proxy"}
	}
	return []string{"proxy"}
}

// user is who sends a request: the owner of its certificate or of its token.
func (a *access) user(r *http.Request) (authenticationv1.UserInfo, bool) {
	if certs := r.TLS.PeerCertificates; len(certs) > 0 {
		between := x509.NewCertPool()
		for _, c := range certs[1:] {
			between.AddCert(c)
		}
		o := x509.VerifyOptions{Roots: a.clients, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := certs[0].Verify(o); err == nil {
			subject := certs[0].Subject
			return authenticationv1.UserInfo{Username: subject.CommonName, Groups: append(slices.Clone(subject.Organization), "system:authenticated")}, true
		}
	}
	token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !is || token == "" {
		return authenticationv1.UserInfo{}, false
	}
	return a.owner(r.Context(), token)
}

// owner asks the API server whose token it is.
func (a *access) owner(ctx context.Context, token string) (authenticationv1.UserInfo, bool) {
	if known, ok := cached(a, a.tokens, token); ok {
		return known, true
	}
	review, err := a.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return authenticationv1.UserInfo{}, false
	}
	keep(a, a.tokens, token, review.Status.User, tokenTTL)
	return review.Status.User, true
}

// may asks the API server whether a user may use a subresource of this node.
func (a *access) may(ctx context.Context, user authenticationv1.UserInfo, verb, subresource string) (bool, error) {
	key := strings.Join(append([]string{user.Username, verb, subresource}, user.Groups...), "\x00")
	if allowed, ok := cached(a, a.rights, key); ok {
		return allowed, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	review, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: a.node},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	ttl := forbiddenTTL
	if review.Status.Allowed {
		ttl = allowedTTL
	}
	keep(a, a.rights, key, review.Status.Allowed, ttl)
	return review.Status.Allowed, nil
}

func cached[T any](a *access, from map[string]answer[T], key string) (T, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := from[key]
	return known.value, ok && time.Now().Before(known.until)
}

func keep[T any](a *access, in map[string]answer[T], key string, value T, ttl time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for k, old := range in {
		if now.After(old.until) {
			delete(in, k)
		}
	}
	in[key] = answer[T]{value, now.Add(ttl)}
}
