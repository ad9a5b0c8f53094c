"""Suggest nodekin's names for the arguments of LangChain, LlamaIndex, LazyLLM and haystack."""

from __future__ import annotations

from collections.abc import Collection

_ARGUMENTS = {
    "top_k k similarity_top_k top_n": "topk limit n_results max_top_k num_results",
    "fetch_k": "child_k depth sparse_top_k hybrid_top_k",
    "filters filter": "where metadata_filter metadata_filters extra_filters search_filter",
    "min_score score_threshold": (
        "similarity_cut_off similarity_cutoff similarity_threshold relevance_score_threshold"
    ),
    "max_tokens": "max_token_limit token_limit token_budget",
    "max_queries": "num_queries count limit n_expansions",
    "max_steps": "num_steps",
    "include_query": "include_original use_original_query",
    "embed embedding embed_model": (
        "embeddings embedding_function text_embedder document_embedder encoder"
    ),
    "store": (
        "persist_dir persist_directory persist_path store_conf docstore path uri "
        "connection connection_string location"
    ),
    "source": "dataset_path documents input_dir data doc_files",
    "documents": "docs",
    "retrievers": "retriever",
    "inner": "base_retriever retriever vector_retriever",
    "retriever": "base_retriever inner vector_retriever",
    "graph": "doc docs index node_graph document_store",
    "weights": "weight retriever_weights",
    "mode": "join_mode",
    "rank_constant": "c",
    "merge_by": "id_key",
    "ratio": "simple_ratio_thresh threshold",
    "before after": "window_size",
    "reranker": "base_compressor compressor rerank ranker name",
    "node_postprocessors": "postprocessors rerankers",
    "llm": "model chat_model llm_chain generator chat_generator",
    "prompt": "query_gen_prompt prompt_template prompt_template_str",
    "query input": "question query_str text",
    "group": "group_name node_group name",
    "num_workers": "max_workers workers max_threads",
    "timeout": "max_seconds request_timeout",
    "task": "task_type",
    "higher_is_better": "descend",
    "embed_keys": "embed_key vector_name",
    "required": "required_keys required_keywords",
    "excluded": "exclude_keys exclude_keywords",
    "similarity": (
        "distance_strategy collection_metadata collection_configuration "
        "embedding_similarity_function similarity_fn bm25_algorithm"
    ),
}
"""Maps an argument name of nodekin to the names of the same argument in other libraries.

Adapters use the names of their framework, so a key can contain several names. The first of them
that the function accepts is suggested. A foreign name may occur in several rows. The first row with
a name that the function accepts is used.
"""

_REMEDIES = {
    "k1 b bm25_params bm25_parameters similarity_kw": (
        "settings of a similarity go to the similarity: similarity=Bm25(k1=1.2)"
    ),
    "preprocess_func vectorizer bm25_tokenization_regex": (
        "texts are split into words by their language; for other words, write "
        "similarity=Bm25(analyzer=...)"
    ),
    (
        "bm25_algorithm embedding_similarity_function distance_strategy similarity_fn "
        "collection_metadata collection_configuration"
    ): 'a retriever has a similarity: Retriever(graph, "sentence", "bm25" or "cosine")',
    "normalize_L2": "cosines are compared, so vectors need no normalization; leave it out",
    "scale_score": "scores are returned as the similarity computes them; leave it out",
    "vectorstore vector_store byte_store docstore index_to_docstore_id storage_context": (
        "the graph keeps documents and vectors, in memory or in the file store=; to keep "
        "vectors in another store, write index=as_index(vector_store)"
    ),
    (
        "host port ssl headers client client_settings database chroma_cloud_api_key api_key "
        "url server launcher cloud"
    ): (
        "nodekin runs in this process; to keep vectors in a server, create its vector store "
        "and write index=as_index(vector_store)"
    ),
    "manager": "a graph is updated by refresh(), and `nodekin serve` shows a page; leave it out",
    "create_ui": "`nodekin serve` shows a page; leave it out",
    "tenant": (
        'write restrict(retriever, {"tenant": ...}), or give each tenant a store= of its own'
    ),
    "collection_name index_name": (
        "a store= holds one collection; give each collection a path of its own"
    ),
    "create_collection_if_not_exists": "the file store= is created if it is missing; leave it out",
    "add_to_docstore": "documents and their children are always stored together; leave it out",
    "allow_dangerous_deserialization": "nothing is unpickled; leave it out",
    "io_flags": "the file is a database; leave it out",
    "doc_fields": "leave out 'doc_fields': filters accept every metadata field",
    "child_metadata_fields": "children keep the metadata of their document; leave it out",
    "id_key": "children know their document; leave it out",
    "ids": "write the ids into the documents: Document(..., id=...)",
    "metadatas": "write the metadata into the documents: Document(..., metadata=...)",
    "search_type vector_store_query_mode alpha lambda_mult mmr_threshold": (
        'similarity="cosine" or "bm25" selects one search, and by default both are fused; '
        'NodeGraphVectorStore.as_retriever(search_type="mmr") diversifies, with lambda_mult '
        "in search_kwargs"
    ),
    "return_embedding": "node.embedding() returns the vector of a node; leave it out",
    "fetch_k": "conditions are checked before ranking, so no result is lost; leave it out",
    "where_document": 'quote the text in the query, with phrases="required"',
    "filter_policy": "a filter of a call is added to the filter of the retriever; leave it out",
    "words collapse vectors": (
        "write NodeGraphRetriever(DefaultRetriever(graph, words=..., vectors=...))"
    ),
    "min_score relative_cut": (
        "write RerankRetriever(retriever, Reranker(name, model=..., min_score=...)), whose "
        "reranker cuts the results"
    ),
    "base_compressor base_retriever": (
        "write NodeGraphRetriever(RerankRetriever(retriever, reranker))"
    ),
    "retrievers weights c retriever_weights": (
        "write NodeGraphRetriever(FusionRetriever(retrievers, weights=...))"
    ),
    "llm llm_chain query_transform": (
        'write strategy="multi_query", "rewrite" or another one, with llm='
    ),
    "prompt": "write NodeGraphRetriever(MultiQueryRetriever(retriever, llm, prompt=...))",
    "retriever": "write NodeGraphRetriever(retriever)",
    "parser_key": "lists are read in every usual form; leave it out",
    "include_original": "multi_query always searches the question, too; leave it out",
    "early_stopping": "a search in steps stops if the model has no more questions; leave it out",
    (
        "query_constructor structured_query_translator document_contents metadata_field_info "
        "enable_limit use_original_query chain_kwargs"
    ): 'write strategy="self_query", with llm=',
    "memory_stream decay_rate other_score_keys default_salience": (
        'scores know no dates; write filter={"date": {"gte": ...}}'
    ),
    "documents": "write from_documents(documents) or add_documents(documents)",
    "docs texts": "write from_texts(texts) or from_documents(documents)",
    "child_splitter parent_splitter": (
        "write NodeGraphRetriever.from_documents(documents, child_splitter=...)"
    ),
    "embedding embeddings embedding_function embed_model embed": (
        "write from_documents(documents, embedding), or NodeGraph(embed=...)"
    ),
    "persist_directory persist_dir store path": "a graph has the file: NodeGraph(store=...)",
    "k top_k similarity_top_k": (
        "the number of results is an argument of each search: retriever(query, top_k=...), "
        'similarity_search(query, k), store.as_retriever(search_kwargs={"k": ...})'
    ),
    "index": "write index=as_index(vector_store) where the retriever is created",
    "model": 'write Reranker("ModuleReranker", model=...)',
    "folder_path": "write NodeGraphVectorStore.load_local(folder_path), or store=",
    "relevance_score_fn": "it is an argument of NodeGraphVectorStore",
    "search_kwargs": "write its entries as arguments",
    "similarity_threshold": "write RerankRetriever(..., min_score=...) or score_threshold=",
    "document_prompt document_separator": (
        "passages are numbered, for citations, and show= adds metadata fields"
    ),
    "response_format": "the message has the text, and its artifact the documents; leave it out",
    "name tags metadata": "they belong to the retriever: NodeGraphRetriever",
    "verbose": "callbacks get a run per stage, and `with trace() as span` records the stages",
    "use_async async_executor": "await aretrieve(); leave it out",
    "output_format join": 'write it in the call: retriever(query, output_format="content")',
    "show_progress": "progress is an argument of NodeGraph(progress=...)",
}
"""Advice for arguments of other libraries that have no equivalent here, keyed by their names."""

_LLAMA_INDEX = {
    "objects object_map": "write NodeGraphIndex(nodes, objects=...)",
    "callback_manager": "write NodeGraphRetriever(retriever, callback_manager=...)",
    "node_dict retriever_dict query_engine_dict root_id query_response_tmpl": (
        'references between nodes are followed by LlamaIndex: RecursiveRetriever("index", '
        'retriever_dict={"index": index.as_retriever()}, ...)'
    ),
    "num_queries query_gen_prompt": (
        'several phrasings are strategy="multi_query", with llm= and max_queries='
    ),
    "mode": "retrievers are fused by FusionRetriever(retrievers, mode)",
    "simple_ratio_thresh vector_retriever": "write AutoMergeRetriever(retriever, ratio=...)",
    "vector_store_info empty_query_top_k default_empty_query_vector prompt_template_str": (
        'filters from the question are strategy="self_query", or write '
        "VectorIndexAutoRetriever(index, vector_store_info, llm=...)"
    ),
    "nodes index_struct": "write NodeGraphIndex(nodes).as_retriever()",
    "node_ids doc_ids sparse_top_k hybrid_top_k vector_store_kwargs": (
        "write NodeGraphIndex(...).as_retriever(...), which has this argument"
    ),
    "stemmer language skip_stemming token_pattern tokenizer": (
        "texts are split into words by their language; for other words, write "
        "similarity=Bm25(analyzer=...)"
    ),
    "existing_bm25": "the index of words is stored in the file store=; leave it out",
    "corpus_weight_mask": "write filters=, which are checked before ranking",
    "index_summary": "each step reads the earlier passages; leave it out",
    "stop_fn": "a search in steps stops if the model has no more questions; max_steps= limits it",
    "num_steps": 'steps are strategy="multi_step", with max_steps=',
    "query_engine query_engine_tools": (
        "write NodeGraphQueryEngine.from_defaults(query_engine_tools, llm)"
    ),
    "question_gen": "the strategy writes its own questions; replace its prompt= or llm=",
    "selector select_multi summarizer": (
        "write RouterQueryEngine(selector, tools), or nodekin's RouterRetriever"
    ),
    "transform_metadata": "a transform reads the query only; leave it out",
    "response_synthesizer": "write NodeGraphQueryEngine(retriever, response_synthesizer=...)",
}
"""Advice for further arguments of LlamaIndex, keyed by their names."""

_SEARCH_KWARGS = ("k", "filter", "score_threshold", "fetch_k")

_DOCUMENT_FIELDS = ("id", "ids", "metadata", "metadatas", "meta", "title")
"""Names of arguments that describe documents in methods of other libraries that add them."""

_ATTRIBUTES = {
    "get_text": "text",
    "content": "text",
    "get_content": "text",
    "page_content": "text",
    "node_id": "id",
    "id_": "id",
    "uid": "id",
    "meta": "metadata",
    "global_metadata": "metadata",
    "similarity_score": "score",
    "relevance_score": "score",
    "delete": "remove",
    "delete_documents": "remove",
    "delete_ref_doc": "remove",
    "add_documents": "add",
    "add_texts": "add",
    "insert": "add",
    "upsert": "add",
    "write_documents": "add",
    "invoke": "search",
    "query": "search",
    "retrieve": "search",
    "similarity_search": "search",
}
"""Maps attributes of documents, nodes and stores in other libraries to the attributes used here."""


def missing_attribute(item: object, name: str, inner: str = "") -> AttributeError:
    """Create the error for a missing attribute. The message suggests the correct attribute.

    Args:
        item: The object without the attribute.
        name: The name of the missing attribute.
        inner: The name of an attribute that holds another object. The message may suggest an
            attribute of that object.
    """
    message = f"{type(item).__name__!r} object has no attribute {name!r}"
    ours = _ATTRIBUTES.get(name, name)
    if ours != name and hasattr(type(item), ours):
        message += f"; write .{ours}"
    elif ours != name and inner and hasattr(type(getattr(item, inner, None)), ours):
        message += f"; write .{inner}.{ours}"
    return AttributeError(message, name=name, obj=item)


def advice(name: str, allowed: Collection[str]) -> str:
    """Explain how to replace an argument name of another library.

    Args:
        name: The argument name that was passed.
        allowed: The argument names that the function accepts.

    Example:
        >>> advice("similarity_top_k", ["query", "top_k"])
        "'similarity_top_k' is called 'top_k' here"
        >>> advice("colour", ["embedding"])
        ''
    """
    native = native_name(name, allowed)
    if native is not None:
        return f"{name!r} is called {native!r} here"
    if "items" in allowed and name in _DOCUMENT_FIELDS:
        return "write it into the documents: Document(text, metadata, id=...)"
    if "search_kwargs" in allowed:
        option = name if name in _SEARCH_KWARGS else native_name(name, _SEARCH_KWARGS)
        if option is not None:
            return f'write search_kwargs={{"{option}": ...}}'
    for names, remedy in (*_REMEDIES.items(), *_LLAMA_INDEX.items()):
        if name in names.split():
            return remedy
    return ""


def native_name(name: str, allowed: Collection[str]) -> str | None:
    """Return the name that a function uses for an argument of another library, or None."""
    for row, foreign in _ARGUMENTS.items():
        ours = row.split()
        if name not in ours and name not in foreign.split():
            continue
        for native in ours:
            if native in allowed and native != name:
                return native
    return None
