"""Public names of PyTorch 2.15.0, by module. tests/python/compat_facts.py writes this file."""

_NAMES = {
    "torch": """BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor Event FloatTensor Generator GradScaler HalfTensor IntTensor LongTensor
        OutOfMemoryError ShortTensor Size Stream SymInt Tensor abs abs_ absolute accelerator acos acos_ acosh acosh_ adaptive_avg_pool1d
        adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addmv_ addr adjoint affine_grid_generator all allclose alpha_dropout
        alpha_dropout_ amax amin aminmax amp angle any ao arange arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan
        arctan2 arctan_ arctanh arctanh_ are_deterministic_algorithms_enabled argmax argmin argsort argwhere as_strided as_strided_
        as_strided_scatter as_tensor asarray asin asin_ asinh asinh_ atan atan2 atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d autocast
        autograd avg_pool1d backends baddbmm bartlett_window batch_norm bcomplex32 bernoulli bfloat16 bilinear
        binary_cross_entropy_with_logits bincount binomial bits1x8 bits2x4 bits4x2 bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor blackman_window block_diag bmm bool broadcast_shapes broadcast_tensors broadcast_to bucketize
        can_cast cartesian_prod cat cdist cdouble ceil ceil_ celu celu_ cfloat chain_matmul chalf channel_shuffle channels_last
        channels_last_3d cholesky cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ classes classproperty
        clear_autocast_cache clip clip_ clone column_stack combinations compile compiled_with_cxx11_abi compiler complex complex128
        complex32 complex64 concat concatenate cond conj conj_physical conj_physical_ constant_pad_nd contiguous_format conv1d conv2d conv3d
        conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution copysign corrcoef cos cos_ cosh cosh_ cosine_embedding_loss
        cosine_similarity count_nonzero cov cpu cross ctc_loss cuda cummax cummin cumprod cumsum cumulative_trapezoid default_generator
        deg2rad deg2rad_ dequantize det detach detach_ device diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist
        distributed distributions div divide dot double dropout dropout_ dsmm dsplit dstack dtype e eig einsum embedding embedding_bag
        embedding_renorm_ empty empty_like empty_permuted empty_quantized empty_strided enable_grad eq equal erf erf_ erfc erfc_ erfinv exp
        exp2 exp2_ exp_ expm1 expm1_ export eye feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fft fill fill_
        finfo fix fix_ flatten flip fliplr flipud float float16 float32 float4_e2m1fn_x2 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2
        float8_e5m2fnuz float8_e8m0fnu float_power floor floor_ floor_divide fmax fmin fmod foreach fork frac frac_ frexp frobenius_norm
        from_dlpack from_file from_numpy frombuffer full full_like func functional futures fx gather gcd gcd_ ge geqrf ger
        get_autocast_dtype get_default_device get_default_dtype get_deterministic_debug_mode get_device get_device_module get_file_path
        get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state gradient greater greater_equal grid_sampler
        grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt half hamming_window hann_window hardshrink has_lapack has_mkl has_openmp
        has_spectral hash_tensor heaviside hinge_embedding_loss histc histogram histogramdd hsmm hsplit hspmm hstack hub hypot i0 i0_ igamma
        igammac iinfo imag index_add index_copy index_fill index_put index_put_ index_reduce index_select inf inference_mode initial_seed
        inner instance_norm int int16 int32 int64 int8 int_repr inverse is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_enabled
        is_complex is_conj is_deterministic_algorithms_warn_only_enabled is_distributed is_floating_point is_grad_enabled is_inference
        is_inference_mode_enabled is_neg is_nonzero is_same_size is_signed is_storage is_tensor is_warn_always_enabled isclose isfinite isin
        isinf isnan isneginf isposinf isreal istft jagged jit kaiser_window kl_div kron kthvalue layer_norm layout lcm lcm_ ldexp ldexp_ le
        legacy_contiguous_format lerp less less_equal lgamma library linalg linspace load lobpcg log log10 log10_ log1p log1p_ log2 log2_
        log_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logit_ logspace
        logsumexp long lstm lstm_cell lstsq lt lu lu_solve lu_unpack manual_seed margin_ranking_loss masked masked_fill masked_scatter
        masked_select matmul matrix_exp matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d max_pool3d maximum mean
        median memory_format meshgrid min minimum mm mode monitor moveaxis movedim mps msort mtia mul multinomial multiply multiprocessing
        mv mvlgamma nan nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow ne neg neg_ negative negative_ nested newaxis
        nextafter nn no_grad nonzero nonzero_static norm norm_except_dim normal not_equal nuclear_norm numel ones ones_like ops optim orgqr
        ormqr outer overrides package pairwise_distance pca_lowrank pdist permute pi pinverse pixel_shuffle pixel_unshuffle poisson
        poisson_nll_loss polar polygamma positive pow prelu preserve_format prod profiler promote_types put qr quantile rad2deg rad2deg_
        rand rand_like randint randint_like randn randn_like random randperm range ravel real reciprocal reciprocal_ relu relu_ remainder
        renorm repeat_interleave reshape resize_as_ resize_as_sparse_ resolve_conj resolve_neg result_type return_types rms_norm rnn_relu
        rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round round_ row_stack rrelu rrelu_ rsqrt rsqrt_ rsub saddmm save scalar_tensor
        scatter scatter_add scatter_reduce searchsorted seed segment_reduce select select_scatter selu selu_ serialization
        set_anomaly_enabled set_autocast_dtype set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_grad_enabled set_num_interop_threads set_num_threads set_printoptions
        set_rng_state set_warn_always sgn short sigmoid sigmoid_ sign signal signbit sin sin_ sinc sinc_ sinh sinh_ slice_scatter slogdet
        smm softmax solve sort sparse special split split_with_sizes spmm sqrt sqrt_ square square_ squeeze sspaddmm stack std std_mean stft
        storage strided sub subtract sum svd svd_lowrank swapaxes swapdims t take take_along_dim tan tan_ tanh tanh_ tensor tensor_split
        tensordot testing thread_safe_generator threshold threshold_ tile to_dlpack topk torch_version trace transpose trapezoid trapz
        triangular_solve tril tril_indices triplet_margin_loss triu triu_indices true_divide trunc trunc_ typename types uint16 uint32
        uint64 uint8 unbind unflatten unique unique_consecutive unravel_index unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
        use_deterministic_algorithms utils vander var var_mean vdot version view_as_complex view_as_real vmap vsplit vstack wait where
        while_loop xlogy xlogy_ xpu zero_ zeros zeros_like""",
    "nn": """AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d BatchNorm3d Bilinear
        Buffer CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Container
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss
        CrossMapLRN2d DataParallel Dropout Dropout1d Dropout2d Dropout3d ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold
        FractionalMaxPool2d FractionalMaxPool3d GELU GLU GRU GRUCell GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh
        HingeEmbeddingLoss HuberLoss Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LSTM
        LSTMCell LayerNorm LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d
        LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LeakyReLU Linear
        LinearCrossEntropyLoss LinearCrossEntropyOptions LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d
        MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish Module ModuleDict ModuleList MultiLabelMarginLoss
        MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention NLLLoss NLLLoss2d PReLU PairwiseDistance Parameter ParameterDict
        ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNN RNNBase RNNCell RNNCellBase RReLU ReLU ReLU6 ReflectionPad1d
        ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU Sequential SiLU Sigmoid SmoothL1Loss
        SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign SyncBatchNorm Tanh Tanhshrink Threshold Transformer
        TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer TripletMarginLoss
        TripletMarginWithDistanceLoss Unflatten Unfold UninitializedBuffer UninitializedParameter Upsample UpsamplingBilinear2d
        UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d attention common_types factory_kwargs functional grad init intrinsic modules
        parallel parameter utils""",
    "nn.functional": """Tensor adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices
        adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout
        assert_int_or_pair avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits
        boolean_dispatch celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
        cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_ embedding
        embedding_bag feature_alpha_dropout fold fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm grouped_mm gumbel_softmax handle_torch_function
        hardshrink hardsigmoid hardswish hardtanh hardtanh_ has_torch_function has_torch_function_unary has_torch_function_variadic
        hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear
        linear_cross_entropy local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d
        max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d
        mish mse_loss multi_head_attention_forward multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize
        one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm rrelu rrelu_
        scaled_addmm scaled_addmm_ scaled_dot_product_attention scaled_grouped_mm scaled_mm selu selu_ sigmoid silu smooth_l1_loss
        soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold threshold_ triplet_margin_loss
        triplet_margin_with_distance_loss unfold upsample upsample_bilinear upsample_nearest""",
    "nn.init": """Tensor calculate_gain constant constant_ dirac dirac_ eye eye_ kaiming_normal kaiming_normal_ kaiming_uniform kaiming_uniform_
        normal normal_ ones_ orthogonal orthogonal_ sparse trunc_normal_ uniform uniform_ xavier_normal xavier_normal_ xavier_uniform
        xavier_uniform_ zeros_""",
    "nn.utils": """clip_grad clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ convert_conv2d_weight_memory_format
        convert_conv3d_weight_memory_format convert_parameters fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval
        fuse_linear_bn_weights fusion get_total_norm init memory_format parameters_to_vector parametrizations parametrize
        remove_spectral_norm remove_weight_norm rnn skip_init spectral_norm stateless vector_to_parameters weight_norm""",
    "nn.utils.rnn": """PackedSequence invert_permutation pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence unpack_sequence unpad_sequence""",
    "nn.utils.parametrizations": """orthogonal spectral_norm weight_norm""",
    "nn.parallel": """DataParallel DistributedDataParallel comm data_parallel distributed gather parallel_apply replicate scatter scatter_gather""",
    "nn.parameter": """Buffer Parameter UninitializedBuffer UninitializedParameter UninitializedTensorMixin is_lazy""",
    "optim": """ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam Optimizer RAdam RMSprop Rprop SGD SparseAdam functional
        lr_scheduler swa_utils swap_in_optimizer_params_and_state""",
    "optim.lr_scheduler": """ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler LambdaLR LinearLR
        MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR""",
    "optim.swa_utils": """AveragedModel SWALR get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn get_swa_multi_avg_fn update_bn""",
    "amp": """GradScaler autocast autocast_mode custom_bwd custom_fwd grad_scaler is_autocast_available""",
    "accelerator": """Graph current_accelerator current_device_idx current_device_index current_stream device_count device_index empty_cache
        empty_host_cache get_device_capability get_memory_info graphs is_available max_memory_allocated max_memory_reserved memory
        memory_allocated memory_reserved memory_stats random reset_accumulated_memory_stats reset_peak_memory_stats set_device_idx
        set_device_index set_stream synchronize""",
    "cuda": """AcceleratorError BFloat16Tensor BoolTensor ByteTensor CUDAGraph CUDAPluggableAllocator CharTensor CudaError DeferredCudaCallError
        DoubleTensor Event ExternalStream FloatTensor HalfTensor IntTensor LongTensor MemPool OutOfMemoryError ShortTensor Stream amp
        caching_allocator_alloc caching_allocator_delete caching_allocator_disabled caching_allocator_enable can_device_access_peer
        change_current_allocator check_error classproperty clock_rate cudaStatus cudart current_blas_handle current_device
        current_solver_handle current_stream default_generators default_stream device device_count device_memory_used device_of empty_cache
        export_dot export_graph_data gds get_allocator_backend get_arch_list get_device_capability get_device_name get_device_properties
        get_gencode_flags get_per_process_memory_fraction get_rng_state get_rng_state_all get_stream_from_external get_sync_debug_mode graph
        graph_annotations graph_pool_handle graphs green_contexts has_half has_magma host_memory_stats host_memory_stats_as_nested_dict init
        initial_seed ipc_collect is_available is_bf16_supported is_current_stream_capturing is_initialized is_tf32_supported jiterator
        list_gpu_processes make_graphed_callables manual_seed manual_seed_all max_memory_allocated max_memory_cached max_memory_reserved
        mem_get_info memory memory_allocated memory_cached memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict
        memory_summary memory_usage nccl nvtx power_draw profiler random reset_accumulated_host_memory_stats reset_accumulated_memory_stats
        reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats seed seed_all set_device
        set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream set_sync_debug_mode sparse stream streams synchronize
        temperature tunable use_mem_pool utilization""",
    "cuda.amp": """GradScaler amp_definitely_not_available autocast autocast_mode common custom_bwd custom_fwd grad_scaler""",
    "backends": """cpu cuda cusparselt kleidiai mha mkl mps nnpack openmp opt_einsum python_native""",
    "backends.cuda": """SDPAParams allow_fp16_bf16_reduction_math_sdp blas_workspace_size can_use_cudnn_attention can_use_efficient_attention
        can_use_flash_attention cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager cublas_workspace_size
        cublaslt_workspace_size cufft_plan_cache enable_cudnn_sdp enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp
        flash_sdp_enabled fp16_bf16_reduction_math_sdp_allowed is_built is_ck_sdpa_available is_flash_attention_available math_sdp_enabled
        matmul mem_efficient_sdp_enabled preferred_blas_library preferred_linalg_library preferred_rocm_fa_library sdp_kernel""",
    "backends.cudnn": """""",
    "backends.mps": """get_core_count get_name is_available is_built is_macos13_or_newer is_macos_or_newer""",
    "autograd": """Function NestedIOFunction Variable anomaly_mode backward detect_anomaly enable_grad enforce_grad_layout_policy forward_ad function
        functional grad grad_mode gradcheck gradgradcheck graph inference_mode no_grad profiler profiler_legacy profiler_util
        set_detect_anomaly set_grad_enabled set_multithreading_enabled variable""",
    "autograd.functional": """hessian hvp jacobian jvp vhp vjp""",
    "utils": """ThroughputBenchmark backcompat backend_registration checkpoint collect_env cpp_backtrace data deterministic dlpack
        generate_methods_for_privateuse1_backend get_cpp_backtrace hooks rename_privateuse1_backend set_module swap_tensors
        throughput_benchmark weak""",
    "utils.data": """BatchSampler ChainDataset ConcatDataset DFIterDataPipe DataChunk DataLoader Dataset DistributedSampler IterDataPipe IterableDataset
        MapDataPipe RandomSampler Sampler SequentialSampler StackDataset Subset SubsetRandomSampler TensorDataset WeightedRandomSampler
        argument_validation dataloader datapipes dataset default_collate default_convert distributed functional_datapipe get_worker_info
        graph graph_settings guaranteed_datapipes_determinism non_deterministic random_split runtime_validation runtime_validation_disabled
        sampler""",
    "utils.data.distributed": """DistributedSampler""",
    "utils.checkpoint": """CheckpointError CheckpointFunction CheckpointPolicy GraphExecGroup SAC_IGNORED_OPS check_backward_validity checkpoint
        checkpoint_sequential create_selective_checkpoint_contexts detach_variable get_device_states noop_context_fn
        set_checkpoint_debug_enabled set_checkpoint_early_stop set_device_states""",
    "utils.tensorboard": """""",
    "distributed": """AllToAllOptions AllreduceCoalescedOptions AllreduceOptions Backend BackendConfig BarrierOptions BroadcastOptions DebugLevel
        DeviceMesh DistBackendError DistError DistNetworkError DistStoreError FileStore GatherOptions GradBucket GroupMember GroupName
        HashStore Logger P2POp PrefixStore ProcessGroup ProcessGroupGloo ProcessGroupNCCL ProcessGroupNCCL2 ProcessGroupNCCLLazy
        QueueEmptyError ReduceOp ReduceOptions ReduceScatterOptions Reducer ScatterOptions Store TCPStore Work algorithms all_gather
        all_gather_coalesced all_gather_into_tensor all_gather_object all_gather_single all_reduce all_reduce_coalesced all_to_all
        all_to_all_single autograd barrier batch_isend_irecv breakpoint broadcast broadcast_object_list c10d_logger config constants
        destroy_process_group device_mesh distributed_c10d gather gather_into_tensor gather_object gather_single get_backend
        get_backend_config get_backend_impl get_debug_level get_default_backend_for_device get_global_rank get_group_rank
        get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size group init_device_mesh init_process_group irecv
        is_available is_backend_available is_gloo_available is_initialized is_mpi_available is_nccl_available is_torchelastic_launched
        is_ucc_available is_xccl_available isend logging_handlers monitored_barrier new_group new_subgroups new_subgroups_by_enumeration
        record_comm recv recv_object_list reduce reduce_scatter reduce_scatter_single reduce_scatter_tensor register_rendezvous_handler
        remote_device rendezvous rpc scatter scatter_object_list send send_object_list set_debug_level set_debug_level_from_env set_timeout
        shrink_group split_group supports_complex timedelta utils""",
    "distributed.fsdp": """BackwardPrefetch CPUOffload CPUOffloadPolicy DataParallelMeshDims FSDPModule FullOptimStateDictConfig FullStateDictConfig
        FullyShardedDataParallel GradientReductionHandle LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy
        OffloadPolicy OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictConfig
        StateDictSettings UnshardHandle api fully_shard fully_sharded_data_parallel register_fsdp_forward_method share_comm_ctx wrap""",
    "distributed.run": """ArgumentParser DefaultLogsSpecs LaunchConfig LogsSpecs Std check_env config_from_args determine_local_world_size elastic_launch env
        get_args_parser get_logger get_rdzv_endpoint get_use_env macros main record run run_script_path""",
    "multiprocessing": """Array AuthenticationError Barrier BoundedSemaphore BufferTooShort Condition Event JoinableQueue Lock Manager Pipe Pool Process
        ProcessError Queue RLock RawArray RawValue Semaphore SimpleQueue TimeoutError Value active_children allow_connection_pickling
        cpu_count current_process freeze_support get_all_sharing_strategies get_all_start_methods get_context get_logger
        get_sharing_strategy get_start_method log_to_stderr parent_process reductions set_executable set_forkserver_preload
        set_sharing_strategy set_start_method""",
    "random": """fork_rng get_rng_state initial_seed manual_seed seed set_rng_state thread_safe_generator""",
    "special": """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
        chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h
        hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp
        modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy zeta""",
    "linalg": """LinAlgError cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product inv inv_ex ldl_factor
        ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul matrix_exp matrix_norm matrix_power matrix_rank matrix_sqrth
        multi_dot norm pinv polar qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm""",
    "fft": """Tensor fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn""",
    "version": """cuda debug git_version hip rocm xpu""",
    "distributions": """AbsTransform AffineTransform Bernoulli Beta Binomial CatTransform Categorical Cauchy Chi2 ComposeTransform ContinuousBernoulli
        CorrCholeskyTransform CumulativeDistributionTransform Dirichlet Distribution ExpTransform Exponential ExponentialFamily
        FisherSnedecor Gamma GeneralizedPareto Geometric Gumbel HalfCauchy HalfNormal Independent IndependentTransform InverseGamma
        Kumaraswamy LKJCholesky Laplace LogNormal LogisticNormal LowRankMultivariateNormal LowerCholeskyTransform MixtureSameFamily
        Multinomial MultivariateNormal NegativeBinomial Normal OneHotCategorical OneHotCategoricalStraightThrough Pareto Poisson
        PositiveDefiniteTransform PowerTransform RelaxedBernoulli RelaxedOneHotCategorical ReshapeTransform SigmoidTransform
        SoftmaxTransform SoftplusTransform StackTransform StickBreakingTransform StudentT TanhTransform Transform TransformedDistribution
        Uniform VonMises Weibull Wishart bernoulli beta biject_to binomial categorical cauchy chi2 constraint_registry constraints
        continuous_bernoulli dirichlet distribution exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel
        half_cauchy half_normal identity_transform independent inverse_gamma kl kl_divergence kumaraswamy laplace lkj_cholesky log_normal
        logistic_normal lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial normal
        one_hot_categorical pareto poisson register_kl relaxed_bernoulli relaxed_categorical studentT transform_to transformed_distribution
        transforms uniform utils von_mises weibull wishart""",
    "jit": """Attribute CompilationUnit Error Future ScriptFunction ScriptModule annotate annotations enable_onednn_fusion export export_opnames
        fork freeze frontend ignore interface isinstance load onednn_fusion_enabled optimize_for_inference save script script_if_tracing
        set_fusion_strategy strict_fusion trace trace_module unused wait""",
    "func": """debug_unwrap functional_call functionalize grad grad_and_value hessian jacfwd jacrev jvp linearize rearrange
        replace_all_batch_norm_modules_ stack_module_state vjp vmap""",
    "onnx": """ExportableModule InputObserver ONNXProgram OnnxExporterError errors export is_in_onnx_export ops""",
    "profiler": """CuspyConfig ExecutionTraceObserver PerformanceMetricsConfig ProfilerAction ProfilerActivity ProfilerActivityConfig itt
        kineto_available profile profiler record_function schedule supported_activities tensorboard_trace_handler""",
    "sparse": """SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS addmm as_sparse_gradcheck
        check_sparse_tensor_invariants log_softmax mm semi_structured softmax sum to_sparse_semi_structured""",
    "hub": """download_url_to_file get_dir help list load load_state_dict_from_url set_dir""",
    "types": """Device FileLike Number""",
    "serialization": """LoadEndianness SourceChangeWarning add_safe_globals check_module_version_greater_or_equal clear_safe_globals
        default_restore_location get_crc32_options get_default_load_endianness get_default_mmap_options get_safe_globals
        get_unsafe_globals_in_checkpoint load location_tag mkdtemp normalize_storage_type register_package safe_globals save
        set_crc32_options set_default_load_endianness set_default_mmap_options skip_data storage_to_tensor_type validate_cuda_device
        validate_hpu_device""",
    "Tensor": """H T abs abs_ absolute absolute_ acos acos_ acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv
        addmv_ addr addr_ adjoint all allclose amax amin aminmax angle any apply_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh
        arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_strided as_strided_ as_strided_scatter
        as_subclass asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ backward baddbmm baddbmm_ bernoulli bernoulli_ bfloat16
        bincount bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_
        bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm bool broadcast_to byte cauchy_ ccol_indices cdouble ceil ceil_
        cfloat chalf char cholesky cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone coalesce
        col_indices conj conj_physical conj_physical_ const_data_ptr contiguous copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_
        count_nonzero cov cpu cross crow_indices cuda cummax cummin cumprod cumprod_ cumsum cumsum_ data data_ptr deg2rad deg2rad_ dense_dim
        dequantize det detach detach_ device diag diag_embed diagflat diagonal diagonal_scatter diff digamma digamma_ dim dim_order dist div
        div_ divide divide_ dot double dsplit dtype eig element_size eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_
        expand expand_as expm1 expm1_ exponential_ fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud float float_power float_power_
        floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp gather gcd gcd_ ge ge_ geometric_ geqrf ger get_device
        grad grad_dtype grad_fn greater greater_ greater_equal greater_equal_ gt gt_ half hardshrink hash_tensor heaviside heaviside_ histc
        histogram hsplit hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_ imag index index_add index_add_ index_copy index_copy_
        index_fill index_fill_ index_put index_put_ index_reduce index_reduce_ index_select indices inner int int_repr inverse ipu
        is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point is_inference is_ipu is_leaf is_maia
        is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_nonzero is_pinned is_quantized is_same_size is_set_to is_shared is_signed
        is_sparse is_sparse_csr is_xla is_xpu isclose isfinite isinf isnan isneginf isposinf isreal istft item itemsize kron kthvalue layout
        lcm lcm_ ldexp ldexp_ le le_ lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_ log log10 log10_ log1p log1p_ log2 log2_
        log_ log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not logical_not_ logical_or
        logical_or_ logical_xor logical_xor_ logit logit_ logsumexp long lstsq lt lt_ lu lu_solve mH mT map2_ map_ masked_fill masked_fill_
        masked_scatter masked_scatter_ masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm mode module_load
        moveaxis movedim msort mtia mul mul_ multinomial multiply multiply_ mv mvlgamma mvlgamma_ name nan_to_num nan_to_num_ nanmean
        nanmedian nanquantile nansum narrow nbytes ndim ndimension ne ne_ neg neg_ negative negative_ nelement new new_empty
        new_empty_strided new_full new_ones new_tensor new_zeros nextafter nextafter_ nonzero nonzero_static norm normal_ not_equal
        not_equal_ numel numpy orgqr ormqr outer output_nr permute pin_memory pinverse polygamma polygamma_ positive pow pow_ prelu prod put
        put_ qr quantile rad2deg rad2deg_ random_ ravel real reciprocal reciprocal_ record_stream register_hook
        register_post_accumulate_grad_hook reinforce relu relu_ remainder remainder_ renorm renorm_ repeat repeat_interleave requires_grad
        requires_grad_ reshape reshape_as resize resize_ resize_as resize_as_ resize_as_sparse_ resolve_conj resolve_neg retain_grad
        retains_grad roll rot90 round round_ row_indices rsqrt rsqrt_ scatter scatter_ scatter_add scatter_add_ scatter_reduce
        scatter_reduce_ select select_scatter set_ sgn sgn_ shape share_memory_ short sigmoid sigmoid_ sign sign_ signbit sin sin_ sinc
        sinc_ sinh sinh_ size slice_scatter slogdet smm softmax solve sort split split_with_sizes sqrt sqrt_ square square_ squeeze squeeze_
        sspaddmm std stft storage storage_offset storage_type stride sub sub_ subtract subtract_ sum sum_to_size svd swapaxes swapaxes_
        swapdims swapdims_ t t_ take take_along_dim tan tan_ tanh tanh_ tensor_split tile to to_dense to_mkldnn to_padded_tensor to_sparse
        to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr tolist topk trace transpose transpose_ triangular_solve tril
        tril_ triu triu_ true_divide true_divide_ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique unique_consecutive
        unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage values var vdot view view_as volatile vsplit
        where xlogy xlogy_ xpu zero_""",
    "nn.Module": """T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval extra_repr float
        forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers named_children
        named_modules named_parameters parameters register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
        register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook register_load_state_dict_pre_hook
        register_module register_parameter register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state
        set_submodule share_memory state_dict to to_empty train type xpu zero_grad""",
    "optim.Optimizer": """OptimizerPostHook OptimizerPreHook add_param_group load_state_dict profile_hook_step register_load_state_dict_post_hook
        register_load_state_dict_pre_hook register_state_dict_post_hook register_state_dict_pre_hook register_step_post_hook
        register_step_pre_hook state_dict step zero_grad""",
}
FACTS = {place: frozenset(names.split()) for place, names in _NAMES.items()}
