package services

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/ca"
	"github.com/slipway-platform/slipway/lab/workload"
)

// StartCertManagerWebhook runs a simulated webhook of cert-manager: HTTPS with a certificate of its own CA, which it stores in the Secret
// in its flags, as the real one does. It allows everything, and writes the requester into a CertificateRequest. It does not validate.
func StartCertManagerWebhook(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	flags, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	authority, err := ca.New("Slipway lab CA")
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(c.PodIP.String(), cmp.Or(flags["secure-port"], "10250"))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(admit), TLSConfig: authority.Server(), ReadHeaderTimeout: 10 * time.Second}
	i, ctx := workload.NewInstance(ctx)
	fmt.Fprintf(c.Log, "simulated webhook of cert-manager on %s: it allows everything\n", address)
	go func() {
		if err := server.ServeTLS(listener, "", ""); err != nil {
			fmt.Fprintln(c.Log, err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	namespace := cmp.Or(flags["dynamic-serving-ca-secret-namespace"], c.Pod.Namespace)
	i.After(c.Cluster.PodStart, func() {
		workload.RetryUntilOK(ctx, c, func() error {
			return storeCA(ctx, c, namespace, flags["dynamic-serving-ca-secret-name"], authority.PEM())
		}, func() { i.SetReady(true) })
	})
	return i, nil
}

// options are the flags of a container in the form --NAME=VALUE.
func options(ctx context.Context, c workload.Container) (map[string]string, error) {
	env, err := workload.Environment(ctx, c)
	if err != nil {
		return nil, err
	}
	flags := map[string]string{}
	for _, argument := range c.Spec.Args {
		if name, value, found := strings.Cut(strings.TrimLeft(argument, "-"), "="); found {
			flags[name] = workload.Expand(value, env)
		}
	}
	return flags, nil
}

// storeCA stores the webhook's CA in the Secret that cainjector reads.
func storeCA(ctx context.Context, c workload.Container, namespace, name string, pem []byte) error {
	secrets := c.Cluster.Client.CoreV1().Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string][]byte{"ca.crt": pem}}
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return err
}

// admit answers an AdmissionReview.
func admit(w http.ResponseWriter, r *http.Request) {
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	request := review.Request
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if r.URL.Path == "/mutate" && request.Resource.Resource == "certificaterequests" && request.Operation == admissionv1.Create {
		patch, err := json.Marshal([]any{
			map[string]any{"op": "add", "path": "/spec/username", "value": request.UserInfo.Username},
			map[string]any{"op": "add", "path": "/spec/groups", "value": request.UserInfo.Groups},
			map[string]any{"op": "add", "path": "/spec/uid", "value": request.UserInfo.UID},
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
}
