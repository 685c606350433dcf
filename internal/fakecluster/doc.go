// Package fakecluster is a cluster for tests, on ports of the loopback interface: the part of the Kubernetes API and of the Talos API
// that a probe asks. It is no production code. Objects are whatever a test puts in; nothing schedules, reconciles or validates, there
// is no authorisation beyond one token, and of exec only the WebSocket protocol is spoken.
package fakecluster
