package proxmox

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	base        = "/api2/json"
	contentType = "application/json;charset=UTF-8"
)

// request is an authenticated call.
type request struct {
	c     *Cluster
	r     *http.Request
	token *Token
	node  *Node      // of the path; nil in calls to the cluster
	form  url.Values // query and body together
}

func (q *request) path() string { return strings.TrimPrefix(q.r.URL.Path, base) }

// routes are the simulated calls. Any other path is answered with 501, as by Proxmox VE.
var routes = map[string]func(*request) (any, error){
	"GET /version":           getVersion,
	"GET /cluster/resources": getResources,
	"GET /cluster/tasks":     listClusterTasks,
	"GET /nodes":             getNodes,
	"GET /pools":             getPools,

	"POST /cluster/ha/resources":               addHAResource,
	"GET /cluster/ha/resources/{sid}":          getHAResource,
	"DELETE /cluster/ha/resources/{sid}":       removeHAResource,
	"POST /cluster/ha/resources/{sid}/migrate": migrateHAResource,

	"GET /nodes/{node}/network":            getNetworks,
	"GET /nodes/{node}/query-url-metadata": queryURL,

	"GET /nodes/{node}/tasks":               listTasks,
	"GET /nodes/{node}/tasks/{upid}/status": getTaskStatus,
	"GET /nodes/{node}/tasks/{upid}/log":    getTaskLog,
	"DELETE /nodes/{node}/tasks/{upid}":     stopTask,

	"GET /nodes/{node}/storage":                                  getStorages,
	"GET /nodes/{node}/storage/{storage}/status":                 getStorageStatus,
	"GET /nodes/{node}/storage/{storage}/content":                getStorageContent,
	"GET /nodes/{node}/storage/{storage}/content/{volume...}":    getVolume,
	"DELETE /nodes/{node}/storage/{storage}/content/{volume...}": deleteVolume,
	"POST /nodes/{node}/storage/{storage}/content":               createVolume,
	"POST /nodes/{node}/storage/{storage}/download-url":          downloadURL,

	"GET /nodes/{node}/qemu":                                     listVMs,
	"POST /nodes/{node}/qemu":                                    createVM,
	"DELETE /nodes/{node}/qemu/{vmid}":                           destroyVM,
	"DELETE /nodes/{node}/qemu/{vmid}/{$}":                       destroyVM,
	"GET /nodes/{node}/qemu/{vmid}/config":                       getConfig,
	"PUT /nodes/{node}/qemu/{vmid}/config":                       updateVM,
	"POST /nodes/{node}/qemu/{vmid}/config":                      updateVM,
	"PUT /nodes/{node}/qemu/{vmid}/cloudinit":                    renewCloudInit,
	"GET /nodes/{node}/qemu/{vmid}/pending":                      getPending,
	"PUT /nodes/{node}/qemu/{vmid}/resize":                       resizeVM,
	"PUT /nodes/{node}/qemu/{vmid}/unlink":                       unlinkDisks,
	"POST /nodes/{node}/qemu/{vmid}/migrate":                     migrateVM,
	"POST /nodes/{node}/qemu/{vmid}/move_disk":                   moveDisk,
	"GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces": getInterfaces,
	"GET /nodes/{node}/qemu/{vmid}/status/current":               getStatus,
	"POST /nodes/{node}/qemu/{vmid}/status/start":                power("qmstart", start),
	"POST /nodes/{node}/qemu/{vmid}/status/stop":                 power("qmstop", stop),
	"POST /nodes/{node}/qemu/{vmid}/status/shutdown":             power("qmshutdown", shutdown),
	"POST /nodes/{node}/qemu/{vmid}/status/reboot":               power("qmreboot", reboot),
	"POST /nodes/{node}/qemu/{vmid}/status/reset":                power("qmreset", reset),
}

// Handler serves the cluster's API below /api2/json, for every node. Serve it with HTTP/1.1: Proxmox VE puts its error
// texts into the status line, and HTTP/2 has none.
func (c *Cluster) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+base+path, c.authenticated(handle))
	}
	mux.HandleFunc(base+"/", c.authenticated(unimplemented))
	return mux
}

// authenticated returns the HTTP handler of a call. It checks the token, finds the node, reads the parameters, and
// writes the answer.
func (c *Cluster) authenticated(handle func(*request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := c.serve(r, handle)
		if err != nil {
			c.log.Info("refused", "method", r.Method, "path", r.URL.Path, "err", err)
			writeError(w, err, c.log)
			return
		}
		body, err := json.Marshal(map[string]any{"data": data})
		if err != nil {
			writeError(w, err, c.log)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Server", serverName)
		if _, err := w.Write(body); err != nil {
			c.log.Debug("answer", "err", err)
		}
	}
}

func (c *Cluster) serve(r *http.Request, handle func(*request) (any, error)) (any, error) {
	// The body is always read to its end: an answer that takes over the connection needs a connection without unread data.
	body, readErr := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	token, err := c.authenticate(r)
	if err != nil {
		return nil, err
	}
	c.asked.Do(func() { c.log.Info("first request", "method", r.Method, "path", r.URL.Path) })
	if err := c.requestError(r); err != nil {
		return nil, err
	}
	if readErr != nil {
		return nil, readErr
	}
	q := &request{c: c, r: r, token: token}
	if q.form, err = readParameters(r, body); err != nil {
		return nil, err
	}
	if name := r.PathValue("node"); name != "" {
		if q.node, err = c.node(name); err != nil {
			return nil, err
		}
		if c.gone(name) {
			return nil, errUnreachable()
		}
	}
	data, err := handle(q)
	if errors.Is(err, errInterrupted) {
		err = internalError("%s", errInterrupted)
	}
	return data, err
}
