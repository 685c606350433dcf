package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// built waits until the image factory has an image. The factory builds an image at the first request for it, which may take minutes, and
// answers then. The provider lets Proxmox VE ask for the size of the image. Where another Proxmox node than the endpoint's asks, Proxmox VE
// waits 30 seconds for it, and answers 596.
type built struct {
	limit time.Duration // longest wait
	every time.Duration // between two requests
	quiet time.Duration // after which say is called
	cut   time.Duration // after which a broken connection means that the factory builds
	say   func(string)
}

// await returns when the factory answers, with whatever status, or when the wait is over: then Proxmox VE finds out by itself. So it does
// if this computer does not reach the factory.
func (b built) await(ctx context.Context, image string) {
	slow := time.AfterFunc(b.quiet, func() {
		b.say(fmt.Sprintf("waits for the image factory, which builds %s, at most %s", image, b.limit))
	})
	defer slow.Stop()
	_ = probe.Wait{Limit: b.limit, Look: b.limit, Every: b.every}.Until(ctx, "the image", func(ctx context.Context) (string, error) {
		reached, began := false, time.Now()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached = true }})
		request, err := http.NewRequestWithContext(ctx, http.MethodHead, image, nil)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil && reached && time.Since(began) > b.cut { // what stands before the factory does not wait so long
			return err.Error(), nil
		}
		if err != nil {
			return "", err
		}
		_ = response.Body.Close()
		switch response.StatusCode {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return response.Status, nil
		}
		return "", nil
	})
}
