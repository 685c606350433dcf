package workload

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// accountFolder is where a container finds its service account.
	accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// NoBackend is the address of a Service without a ready pod. Nothing listens on it, so that connections are refused.
	NoBackend = "127.0.0.253"
	// hostsInterval is how often the names of Services are looked up again.
	hostsInterval = time.Second
)

// inCluster prepares what a program sees of the cluster in its container: the folder with its service account, variables with
// the address of the API server, and a hosts file with the names of Services. It keeps them up to date until ctx ends. Nothing
// is routed to the addresses of Services here. So the API server has its real address, and a Service's name the address of one of its ready
// pods. The ports of a Service and of its pods must therefore be the same.
func inCluster(ctx context.Context, c Container, env map[string]string) (mounts map[string]string, err error) {
	if err := apiServer(c, env); err != nil {
		return nil, err
	}
	folder := filepath.Dir(tokenPath(c))
	if err := os.WriteFile(filepath.Join(folder, "namespace"), []byte(c.Pod.Namespace), 0o600); err != nil {
		return nil, err
	}
	hosts := filepath.Join(c.Dir, "hosts")
	if err := keepHosts(ctx, c, hosts, func() ([]byte, error) { return ServiceNames(ctx, c) }); err != nil {
		return nil, err
	}
	return map[string]string{accountFolder: folder, "/etc/hosts": hosts}, nil
}

// keepHosts writes a hosts file, and again when its names change, until ctx ends.
func keepHosts(ctx context.Context, c Container, path string, names func() ([]byte, error)) error {
	last, err := names()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, last, 0o600); err != nil {
		return err
	}
	go Repeat(ctx, c, hostsInterval, func() error {
		now, err := names()
		if err != nil || bytes.Equal(now, last) {
			return nil // while the API server does not answer, the names stay
		}
		if err := os.WriteFile(path, now, 0o600); err != nil { // the same file, which is mounted
			return err
		}
		last = now
		return nil
	})
	return nil
}

// apiServer adds the variables with the address of the API server.
func apiServer(c Container, env map[string]string) error {
	endpoint, err := url.Parse(c.Cluster.Endpoint)
	if err == nil {
		env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = endpoint.Hostname(), endpoint.Port()
	}
	return err
}

// ServiceNames returns a hosts file with the names of all Services.
func ServiceNames(ctx context.Context, c Container) ([]byte, error) { return serviceNames(ctx, c, nil) }

// serviceNames is ServiceNames with addresses for the Services of the container's own namespace.
func serviceNames(ctx context.Context, c Container, own *ServiceAddresses) ([]byte, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	services, err := c.Cluster.Client.CoreV1().Services("").List(ctx, cached)
	if err != nil {
		return nil, err
	}
	endpoints, err := c.Cluster.Client.DiscoveryV1().EndpointSlices("").List(ctx, cached)
	if err != nil {
		return nil, err
	}
	ready := map[string][]string{} // addresses by NAMESPACE/NAME of the Service
	for _, s := range endpoints.Items {
		key := s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[key] = append(ready[key], e.Addresses...)
			}
		}
	}
	lines := []string{"127.0.0.1 localhost\n"}
	for _, s := range services.Items {
		if s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		address := NoBackend
		if list := ready[s.Namespace+"/"+s.Name]; len(list) > 0 {
			slices.Sort(list)
			address = list[0]
		}
		if s.Namespace == c.Pod.Namespace && s.Spec.ClusterIP != corev1.ClusterIPNone {
			if ip := own.Assign(s.Namespace, s.Name); ip.IsValid() {
				address = ip.String()
			}
		}
		full := s.Name + "." + s.Namespace
		names := []string{full + ".svc.cluster.local", full + ".svc", full}
		if s.Namespace == c.Pod.Namespace {
			names = append(names, s.Name)
		}
		lines = append(lines, fmt.Sprintf("%s %s\n", address, strings.Join(names, " ")))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "")), nil
}
