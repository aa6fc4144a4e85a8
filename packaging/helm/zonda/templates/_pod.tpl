{{/* Template of the pods. */}}
{{- define "zonda.pod" -}}
{{- $isNodeLocal := include "zonda.isNodeLocal" . -}}
{{- $isCorefile := include "zonda.isCorefile" . -}}
{{- $hasState := include "zonda.hasState" . -}}
{{- $kubeDns := include "zonda.kubeDnsConfigMap" . -}}
metadata:
  labels:
    {{- include "zonda.selector" . | nindent 4 }}
    k8s-app: {{ include "zonda.k8sApp" . }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or .Values.podAnnotations (not .Values.corefile.configMap) }}
  annotations:
    {{- if not .Values.corefile.configMap }}
    # Pods are replaced when their configuration changes.
    zonda/configuration: {{ sha256sum (printf "%s%s" .Values.corefile.text (include "zonda.config" .)) }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  {{- if $isNodeLocal }}
  hostNetwork: true
  {{- else }}
  automountServiceAccountToken: true
  {{- end }}
  serviceAccountName: {{ include "zonda.account" . }}
  # /etc/resolv.conf is the node's: the cluster's would name this server.
  dnsPolicy: Default
  enableServiceLinks: false
  priorityClassName: {{ default (ternary "system-node-critical" "system-cluster-critical" (eq .Values.mode "node-local")) .Values.priorityClassName }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    seccompProfile:
      type: RuntimeDefault
    {{- if $isNodeLocal }}
    # Root makes the interface and binds port 53, and has no other capabilities.
    runAsUser: 0
    runAsGroup: 0
    {{- else }}
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    # Lets a user that is not root bind port 53, whether or not the runtime does already.
    sysctls:
      - name: net.ipv4.ip_unprivileged_port_start
        value: "53"
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  tolerations:
    {{- if .Values.tolerations }}
    {{- toYaml .Values.tolerations | nindent 4 }}
    {{- else if $isNodeLocal }}
    - operator: Exists
    {{- else }}
    - key: CriticalAddonsOnly
      operator: Exists
    - key: node-role.kubernetes.io/control-plane
      effect: NoSchedule
    {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not (include "zonda.isDaemonSet" .) }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "zonda.selector" $ | nindent 10 }}
      # Pods of one version spread by themselves, so that an update ends evenly, too.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
  containers:
    - name: zonda
      image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        {{- if $isCorefile }}
        - --corefile
        - /etc/coredns/Corefile
        {{- else }}
        - --config
        - /etc/zonda/zonda.toml
        {{- end }}
      env:
        # Where `zonda ready`, `zonda status` and other commands in the container reach the server.
        - name: ZONDA_ADMIN_SOCKET
          value: /run/zonda/zonda.sock
        {{- if $isCorefile }}
        {{- if $hasState }}
        # Where the names of the cluster are kept for a start without the API server.
        - name: ZONDA_STATE
          value: /var/lib/zonda
        {{- end }}
        {{- if $kubeDns }}
        - name: ZONDA_KUBE_DNS_CONFIG_MAP
          value: /etc/kube-dns
        {{- end }}
        {{- if $isNodeLocal }}
        - name: ZONDA_NODE_LOCAL_ADDRESS
          value: {{ join "," .Values.nodeLocal.addresses | quote }}
        - name: ZONDA_NODE_LOCAL_INTERFACE
          value: {{ .Values.nodeLocal.interface | quote }}
        # What NodeLocal DNSCache puts into its Corefile: the Service that leads to the cluster's DNS.
        - name: __PILLAR__CLUSTER__DNS__
          value: {{ .Values.nodeLocal.upstream | quote }}
        {{- end }}
        {{- end }}
      {{- if not $isNodeLocal }}
      ports:
        - name: dns
          containerPort: 53
          protocol: UDP
        - name: dns-tcp
          containerPort: 53
          protocol: TCP
        {{- with include "zonda.metricsPort" . }}
        - name: metrics
          containerPort: {{ . }}
          protocol: TCP
        {{- end }}
      {{- end }}
      startupProbe:
        {{- include "zonda.probe" (list . "health" "status") | nindent 8 }}
        periodSeconds: 1
        timeoutSeconds: 2
        failureThreshold: 60
      livenessProbe:
        {{- include "zonda.probe" (list . "health" "status") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 5
      readinessProbe:
        {{- include "zonda.probe" (list . "ready" "ready") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
          add: [{{ if $isNodeLocal }}NET_ADMIN, {{ end }}NET_BIND_SERVICE]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: configuration
          mountPath: {{ ternary "/etc/coredns" "/etc/zonda" (eq $isCorefile "true") }}
          readOnly: true
        {{- if and $isCorefile .Values.corefile.customConfigMap }}
        - name: custom
          mountPath: /etc/coredns/custom
          readOnly: true
        {{- end }}
        - name: run
          mountPath: /run/zonda
        {{- if $hasState }}
        - name: state
          mountPath: /var/lib/zonda
        {{- end }}
        {{- if $kubeDns }}
        - name: kube-dns
          mountPath: /etc/kube-dns
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: configuration
      configMap:
        name: {{ default (include "zonda.name" .) .Values.corefile.configMap }}
        {{- if and .Values.corefile.configMap (ne .Values.corefile.key "Corefile") }}
        items:
          - key: {{ .Values.corefile.key }}
            path: Corefile
        {{- end }}
    {{- if and $isCorefile .Values.corefile.customConfigMap }}
    - name: custom
      configMap:
        name: {{ .Values.corefile.customConfigMap }}
        optional: true
    {{- end }}
    - name: run
      emptyDir:
        medium: Memory
        sizeLimit: 1Mi
    {{- if $hasState }}
    - name: state
      {{- if eq .Values.snapshot.type "hostPath" }}
      hostPath:
        path: {{ .Values.snapshot.hostPath }}
        type: DirectoryOrCreate
      {{- else }}
      emptyDir:
        sizeLimit: 1Gi
      {{- end }}
    {{- end }}
    {{- with $kubeDns }}
    - name: kube-dns
      configMap:
        name: {{ . }}
        optional: true
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* How the kubelet asks for a page: the release, the page, and the command that tells the same. */}}
{{- define "zonda.probe" -}}
{{- $root := index . 0 -}}
{{- $port := index $root.Values.ports (index . 1) -}}
{{- if $port -}}
httpGet:
  {{- if include "zonda.isNodeLocal" $root }}
  host: {{ first $root.Values.nodeLocal.addresses | quote }}
  {{- end }}
  path: /{{ index . 1 }}
  port: {{ $port }}
{{- else -}}
exec:
  command: [/usr/bin/zonda, {{ index . 2 }}]
{{- end -}}
{{- end -}}
