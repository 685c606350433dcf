package leftover

import (
	"context"
	"errors"
	"net/http"
)

// Get reads an object or a list from the API server of a kubeconfig, which has the form that Clear takes. It waits for a server that does
// not answer until ctx ends. found is false if there is no such object, or the server does not know its kind.
func Get(ctx context.Context, kubeconfig, path string, answer any) (found bool, err error) {
	api, err := connect(kubeconfig)
	if err != nil {
		return false, err
	}
	err = api.do(ctx, http.MethodGet, path, answer)
	if errors.Is(err, errNotFound) {
		return false, nil
	}
	return err == nil, err
}
