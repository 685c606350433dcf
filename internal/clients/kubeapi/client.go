// Package kubeapi makes clients of Kubernetes APIs, and says which requests to send again.
package kubeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// FieldManager is the manager of the fields that Slipway sets.
const FieldManager = "slipway"

// anything is the media types that a request for any path accepts.
const anything = "application/json, */*"

// maxAnswer is more than the metrics of a big API server.
const maxAnswer = 64 << 20

// Client is a client of one Kubernetes API.
type Client struct {
	Context string // name of the kubeconfig's current context
	Config  *rest.Config
	HTTP    *http.Client // sends the credentials of Config
	Objects dynamic.Interface
}

// keepAlive makes a connection end within six seconds after its server has gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3}

// New makes a client from the content of a kubeconfig. It sends no request. A request, a watch included, takes no longer than timeout,
// unless that is 0. Each request goes through wrappers. The errors contain nothing of the kubeconfig.
func New(kubeconfig []byte, timeout time.Duration, wrappers ...transport.WrapperFunc) (*Client, error) {
	invalid := errors.New("kubeconfig: is not a valid kubeconfig") // the cause may quote the text
	content, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, invalid
	}
	config, err := clientcmd.NewDefaultClientConfig(*content, nil).ClientConfig()
	if err != nil {
		return nil, invalid
	}
	config.UserAgent = "slipway-probe"
	config.Timeout = timeout
	config.QPS, config.Burst = 100, 200
	config.WarningHandler = rest.NoWarnings{}
	// HTTP/1.1 uses one connection for each request. Over HTTP/2 all requests share one connection, so a watch or a request that times out
	// breaks the others; and after a machine was switched off, its connection is used for 45 more seconds.
	config.NextProtos = []string{"http/1.1"}
	// A watch only receives: of a virtual IP that has moved, or a server that went away, it learns by the kernel's probes alone. client-go's
	// own dialer probes after 30 s.
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAliveConfig: keepAlive}).DialContext
	for _, wrap := range wrappers {
		config.Wrap(wrap)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, invalid
	}
	return (&Client{Context: content.CurrentContext, Config: config, HTTP: client}).connect()
}

func (c *Client) connect() (*Client, error) {
	objects, err := dynamic.NewForConfigAndClient(c.Config, c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c.Objects = objects
	return c, nil
}

// At returns a client of the API server at an address, with the port of the kubeconfig's server.
func (c *Client) At(address string) (*Client, error) {
	server, err := url.Parse(c.Config.Host)
	if err != nil {
		return nil, errors.New("kubeconfig: the cluster's server is not a URL")
	}
	server.Host = net.JoinHostPort(address, cmp.Or(server.Port(), "443"))
	at := *c
	at.Config = rest.CopyConfig(c.Config)
	at.Config.Host = server.String()
	return at.connect()
}

// URL returns the URL of a path, which may have a query.
func (c *Client) URL(path string) string { return strings.TrimRight(c.Config.Host, "/") + path }

// Get sends a request for a path, which may have a query, and returns any answer.
func (c *Client) Get(ctx context.Context, path string) (*http.Response, error) {
	return c.get(ctx, path, anything)
}

func (c *Client) get(ctx context.Context, path, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL(path), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return c.HTTP.Do(request)
}

// Read returns the answer for a path, which may have a query. A status that is not 200 is an error, as of Objects.
func (c *Client) Read(ctx context.Context, path string) ([]byte, error) {
	return c.read(ctx, path, anything)
}

// ReadLong is Read for a long answer, such as the metrics: it takes as long as ctx lets it, whatever the client's timeout is.
func (c *Client) ReadLong(ctx context.Context, path string) ([]byte, error) {
	patient, without := *c, *c.HTTP
	without.Timeout = 0
	patient.HTTP = &without
	return patient.Read(ctx, path)
}

func (c *Client) read(ctx context.Context, path, accept string) ([]byte, error) {
	response, err := c.get(ctx, path, accept)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // closing a reader loses no data
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		path, _, _ = strings.Cut(path, "?")
		return nil, refused(response.StatusCode, body, path)
	}
	return body, nil
}

// ReadJSON reads the object or the list at a path into answer. It waits until ctx ends for a server that does not answer. found is false
// if there is no such object, or the server does not know its kind.
func (c *Client) ReadJSON(ctx context.Context, path string, answer any) (found bool, err error) {
	return c.readJSON(ctx, path, "application/json", answer)
}

// Metadata reads the metadata of the objects of the list at a path, as ReadJSON.
func (c *Client) Metadata(ctx context.Context, path string) (metav1.PartialObjectMetadataList, error) {
	var list metav1.PartialObjectMetadataList
	_, err := c.readJSON(ctx, path, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", &list)
	return list, err
}

func (c *Client) readJSON(ctx context.Context, path, accept string, answer any) (found bool, err error) {
	err = Retry(ctx, nil, func() error {
		body, err := c.read(ctx, path, accept)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, answer)
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Kind is what an API server says of a kind of objects.
type Kind struct {
	Resource   schema.GroupVersionResource
	Namespaced bool
}

// Find returns what the API server says of a kind. The error of a kind that it does not serve is NotFound.
func (c *Client) Find(ctx context.Context, apiVersion, kind string) (Kind, error) {
	of, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Kind{}, err
	}
	path := "/apis/" + apiVersion
	if of.Group == "" {
		path = "/api/" + apiVersion
	}
	body, err := c.Read(ctx, path)
	if err != nil {
		return Kind{}, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return Kind{}, err
	}
	for _, one := range list.APIResources {
		if one.Kind == kind && !strings.Contains(one.Name, "/") { // not a part of it, such as its status
			return Kind{of.WithResource(one.Name), one.Namespaced}, nil
		}
	}
	return Kind{}, apierrors.NewNotFound(schema.GroupResource{Group: of.Group, Resource: kind}, "")
}

// refused returns the error for an answer.
func refused(code int, body []byte, path string) error {
	status := &apierrors.StatusError{}
	if err := json.Unmarshal(body, &status.ErrStatus); err == nil && status.ErrStatus.Kind == "Status" && status.ErrStatus.Code != 0 {
		return status
	}
	status = apierrors.NewGenericServerResponse(code, "GET", schema.GroupResource{}, "", "", 0, false)
	status.ErrStatus.Message = fmt.Sprintf("%s answers %d %s", path, code, http.StatusText(code))
	status.ErrStatus.Status = metav1.StatusFailure
	return status
}
