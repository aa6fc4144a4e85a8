{{/* Name of all objects of the release. */}}
{{- define "zonda.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the account. */}}
{{- define "zonda.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "zonda.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels by which objects of the release are found. Helm adds its own when it installs. */}}
{{- define "zonda.labels" -}}
app.kubernetes.io/name: zonda
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* Labels by which the pods of the release are selected. */}}
{{- define "zonda.selector" -}}
app.kubernetes.io/name: zonda
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The label k8s-app of the pods. Caches of nodes are not what a Service of the cluster selects. */}}
{{- define "zonda.k8sApp" -}}
{{- default (ternary "zonda-node-local" "zonda" (eq .Values.mode "node-local")) .Values.k8sApp -}}
{{- end -}}

{{/* "true" if a Corefile is served. */}}
{{- define "zonda.isCorefile" -}}
{{- if or .Values.corefile.text .Values.corefile.configMap -}}true{{- end -}}
{{- end -}}

{{/* "true" if the pods are caches of their nodes. */}}
{{- define "zonda.isNodeLocal" -}}
{{- if eq .Values.mode "node-local" -}}true{{- end -}}
{{- end -}}

{{/* "true" if the server reads the API. */}}
{{- define "zonda.readsApi" -}}
{{- if not (include "zonda.isNodeLocal" .) -}}true{{- end -}}
{{- end -}}

{{/* "true" if the pods are those of a DaemonSet. */}}
{{- define "zonda.isDaemonSet" -}}
{{- if or (include "zonda.isNodeLocal" .) (eq .Values.kind "DaemonSet") -}}true{{- end -}}
{{- end -}}

{{/* "true" if the server keeps a file while it does not run. */}}
{{- define "zonda.hasState" -}}
{{- if ne .Values.snapshot.type "none" -}}true{{- end -}}
{{- end -}}

{{/* Name of the ConfigMap of kube-dns; empty if none is followed. */}}
{{- define "zonda.kubeDnsConfigMap" -}}
{{- default (ternary "kube-dns" "" (eq .Values.mode "node-local")) .Values.kubeDnsConfigMap -}}
{{- end -}}

{{/* Port on which Prometheus reads metrics; empty if it cannot. */}}
{{- define "zonda.metricsPort" -}}
{{- $port := ternary .Values.nodeLocal.metricsPort .Values.ports.metrics (eq .Values.mode "node-local") -}}
{{- if $port -}}{{ $port }}{{- end -}}
{{- end -}}

{{/* What cannot be. */}}
{{- define "zonda.check" -}}
{{- if and .Values.corefile.text .Values.corefile.configMap -}}
{{- fail "corefile.text and corefile.configMap exclude each other" -}}
{{- end -}}
{{- if and .Values.config (include "zonda.isCorefile" .) -}}
{{- fail "config and corefile exclude each other" -}}
{{- end -}}
{{- if include "zonda.isNodeLocal" . -}}
{{- if not .Values.nodeLocal.upstream -}}
{{- fail "nodeLocal.upstream is missing: the address of the cluster's DNS Service (kubectl -n kube-system get service kube-dns)" -}}
{{- end -}}
{{- end -}}
{{- if and (include "zonda.isDaemonSet" .) (or .Values.autoscaling.enabled .Values.proportional.enabled) -}}
{{- fail "autoscaling and proportional need mode cluster and kind Deployment: each node has one pod" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled .Values.proportional.enabled -}}
{{- fail "autoscaling and proportional exclude each other" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor (not (include "zonda.metricsPort" .)) -}}
{{- fail "metrics.serviceMonitor needs ports.metrics" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor (or (include "zonda.isNodeLocal" .) (not .Values.service.create)) -}}
{{- fail "metrics.serviceMonitor needs service.create and mode cluster: it finds pods by the Service" -}}
{{- end -}}
{{- range list "pods" "reverse" "ttl" "autopath" "namespaces" "multicluster" "snapshot" -}}
{{- if hasKey $.Values.kubernetes.options . -}}
{{- fail (printf "kubernetes.options.%s is a value of its own" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.config .Values.kubeDnsConfigMap -}}
{{- fail "kubeDnsConfigMap needs a zonda.toml that is made from values: mount it by extraVolumes" -}}
{{- end -}}
{{- end -}}
