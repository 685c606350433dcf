package workload

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/lab/wait"
)

// tokenLifetime is the requested lifetime of a service-account token.
const tokenLifetime = time.Hour

// writeKubeconfig writes a kubeconfig for the pod's service account, and renews its token until ctx ends. The CA is beside the token. It
// replaces the token volume and the service "kubernetes", to which nothing is routed here.
func writeKubeconfig(ctx context.Context, c Container) (path string, err error) {
	token := tokenPath(c)
	if err := os.MkdirAll(filepath.Dir(token), 0o755); err != nil {
		return "", err
	}
	expires, err := writeToken(ctx, c, token)
	if err != nil {
		return "", err
	}
	ca, err := rootCA(ctx, c)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(token), "ca.crt"), ca, 0o600)
	}
	if err != nil {
		return "", err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["default"] = &clientcmdapi.Cluster{Server: c.Cluster.Endpoint, CertificateAuthorityData: ca}
	k.AuthInfos["default"] = &clientcmdapi.AuthInfo{TokenFile: token}
	k.Contexts["default"] = &clientcmdapi.Context{Cluster: "default", AuthInfo: "default", Namespace: c.Pod.Namespace}
	k.CurrentContext = "default"
	path = filepath.Join(c.Dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return "", err
	}
	go renew(ctx, c, token, expires)
	return path, nil
}

// rootCA returns the certificates by which a container trusts the API server, as its namespace has them when it starts.
func rootCA(ctx context.Context, c Container) ([]byte, error) {
	root, err := c.Cluster.Client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("CA of namespace %s: %w", c.Pod.Namespace, err)
	}
	return []byte(root.Data["ca.crt"]), nil
}

// tokenPath is the file with the pod's token. A container mounts its folder.
func tokenPath(c Container) string { return filepath.Join(c.Dir, "serviceaccount", "token") }

func renew(ctx context.Context, c Container, path string, expires time.Time) {
	for wait.Pause(ctx, max(time.Until(expires)*4/5, 10*time.Second)) {
		next, err := writeToken(ctx, c, path)
		if err != nil {
			c.Cluster.Log.Warn("service account token not renewed", "pod", c.Pod.Name, "err", err)
			continue
		}
		expires = next
	}
}

func writeToken(ctx context.Context, c Container, path string) (expires time.Time, err error) {
	seconds := int64(tokenLifetime / time.Second)
	account := cmp.Or(c.Pod.Spec.ServiceAccountName, "default")
	t, err := c.Cluster.Client.CoreV1().ServiceAccounts(c.Pod.Namespace).CreateToken(ctx, account, &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: c.Pod.Name, UID: c.Pod.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		return expires, fmt.Errorf("token of service account %s/%s: %w", c.Pod.Namespace, account, err)
	}
	if err := os.WriteFile(path+".new", []byte(t.Status.Token), 0o600); err != nil {
		return expires, err
	}
	return t.Status.ExpirationTimestamp.Time, os.Rename(path+".new", path)
}
