package rotate

import (
	"cmp"
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// errUnauthorized is the answer of an API server that does not accept a client's certificate.
var errUnauthorized = errors.New("401 Unauthorized")

// kubernetesClients implements machines and kubernetes.
type kubernetesClients struct {
	*clients
	apiPort string // of API servers
}

func newKubernetesClients(spec *Spec) (kubernetesClients, error) {
	c := kubernetesClients{newClients(spec, listed(ofCluster)), strconv.Itoa(cluster.APIPort)}
	config, err := talosapi.ParseConfig(spec.Talosconfig)
	c.ways = []*clientconfig.Config{config}
	return c, err
}

// Ask implements asker. It asks the API server of a control plane, with a client certificate that an authority signs for it. The client
// has no rights: any answer but 401 means that it is accepted.
func (c kubernetesClients) Ask(ctx context.Context, node turn.Node, own int, servers ...int) error {
	pair, err := c.sign(own)
	if err != nil {
		return err
	}
	code, _, err := c.version(ctx, node, []tls.Certificate{*pair}, servers)
	switch {
	case err != nil:
		return unansweredError{err}
	case code == http.StatusUnauthorized:
		return errUnauthorized
	}
	return nil
}

// version makes a new connection to the API server of a control plane, accepts servers of some authorities only, and asks for its version.
// It returns the status of any answer, and the date.
func (c kubernetesClients) version(
	ctx context.Context, node turn.Node, client []tls.Certificate, servers []int,
) (status int, date string, err error) {
	pool := stdx509.NewCertPool()
	for _, server := range servers {
		pool.AppendCertsFromPEM([]byte(c.certificates[server]))
	}
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: client, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	url := "https://" + net.JoinHostPort(node.Address.String(), c.apiPort) + "/version"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Date"), nil
}

// unansweredError is the error of a call that got no answer of the API server, for whatever reason.
type unansweredError struct{ error }

func (unansweredError) Is(target error) bool { return target == talosapi.ErrSilent }

// sign makes a client certificate of an authority, for a client without rights.
func (c kubernetesClients) sign(own int) (*tls.Certificate, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(&x509.PEMEncodedCertificateAndKey{
		Crt: []byte(c.certificates[own]), Key: []byte(c.KeyOf(own)),
	})
	if err != nil {
		return nil, fmt.Errorf("authorities[%d]: certificate and key are no authority", own) // the cause may quote the key
	}
	now := time.Now()
	pair, err := x509.NewKeyPair(ca, x509.CommonName("slipway-rotate"), x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(time.Hour)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	if err != nil {
		return nil, err
	}
	return pair.Certificate, nil
}

// Settled implements kubernetes.
func (c kubernetesClients) Settled(ctx context.Context, node turn.Node, trust Trust) string {
	missing, err := ofNode(ctx, c.clients, node, func(ctx context.Context, talos *client.Client) (string, error) {
		return kubeletMissing(ctx, talosapi.Clients{node.Address: talos}, node, trust)
	})
	switch {
	case err != nil:
		return "its Talos API does not answer: " + err.Error()
	case missing != "":
		return missing
	}
	switch joined, err := c.Joined(ctx); {
	case err != nil:
		return "the Kubernetes API does not answer: " + err.Error()
	case !joined[node.Name].Ready:
		return "its node is not Ready"
	}
	if node.Role != cluster.ControlPlane {
		return ""
	}
	for _, component := range []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID} {
		if missing = c.staticPodMissing(ctx, node, component); missing != "" {
			return component + " " + missing
		}
	}
	return ""
}

// kubeletMissing returns why a node's kubelet does not trust what the configuration says.
func kubeletMissing(ctx context.Context, talos talosapi.Clients, node turn.Node, trust Trust) (string, error) {
	file, err := talos[node.Address].Read(ctx, constants.KubernetesCACert)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // all is read by then
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return "", err
	}
	if !Equal(Split(string(text)), Split(Bundle(trust.All()))) {
		return "its kubelet has not got the CAs yet", nil
	}
	kubelet, err := talos.Service(ctx, node.Address, "kubelet")
	if err == nil && (kubelet.State != talosapi.Running || !kubelet.Healthy) {
		return "its kubelet is " + cmp.Or(kubelet.State, "not there") + ": " + kubelet.Message, nil
	}
	return "", err
}

// staticPodMissing returns why a component of a control plane does not run with the files that Talos has written for it last.
func (c kubernetesClients) staticPodMissing(ctx context.Context, node turn.Node, component string) string {
	written, err := ofNode(ctx, c.clients, node, func(ctx context.Context, talos *client.Client) (*k8s.StaticPod, error) {
		return safe.StateGetByID[*k8s.StaticPod](ctx, talos.COSI, component)
	})
	if err != nil {
		return "is unknown: " + err.Error()
	}
	running, err := ofMembers(ctx, c.clients, func(members *live.Cluster) (*corev1.Pod, error) {
		return members.StaticPod(ctx, node, component)
	})
	if err != nil {
		return "is unknown: " + err.Error()
	}
	return live.StaticPodProblem(written, running)
}
