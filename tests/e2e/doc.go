// Package e2e contains the end-to-end tests: the real `pulumi up` of the unmodified stack files, in the lab. They need the build
// tag e2e, and the path of the lab's command in SLIPWAY_LAB_COMMAND; `make e2e` sets both.
package e2e
