"""What LangChain's users asked for, beside LangChain's own component; which test shows what."""

import pickle
import re
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from langchain_classic.memory import VectorStoreRetrieverMemory
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
    SelfQueryRetriever,
    TimeWeightedVectorStoreRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
)
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors import (
    MaxMarginalRelevanceExampleSelector,
    SemanticSimilarityExampleSelector,
)
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import Comparator, Comparison, StructuredQuery
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from named_tests import problem

from nodekin.adapters.langchain import (
    NodeGraphQueryEngine,
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    StructuredFilter,
    answer_tool,
    as_index,
    as_transform,
    retriever_tool,
)
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    NearDuplicateFilter,
    QueryEngine,
    RecursiveRetriever,
    Reranker,
    RerankRetriever,
    Retriever,
)
from nodekin.retrievers import MultiQueryRetriever as NativeMultiQueryRetriever

# What LangChain's users found when they ran their programs with nodekin (the first findings), and
# what they asked LangChain for (with the threads of its repository): which tests show that it is
# there. The file is one of this folder where no folder is named.
SHOWN: list[tuple[str, str, list[str]]] = [
    # Whole components
    ("suites", "LangChain's own suites pass with these classes in place of its own",
     ["standard_retriever.py::TestNodeGraphRetriever", "standard_vector_store.py::TestInMemory",
      "standard_document_index.py::TestNodeGraphIndex",
      "standard_key_value_store.py::TestNodeStore"]),
    ("suites", "and with what their first lines make",
     ["standard_retriever.py::TestOfDocuments", "standard_vector_store.py::TestOfDocuments",
      "standard_document_index.py::TestOfDocuments"]),
    ("suites", "a parent retriever of LangChain works over our store as over its own",
     ["key_value_store.py::test_it_serves_langchains_parent_retriever"]),
    ("suites", "a splitter of LangChain cuts in a graph where it cuts outside",
     ["splitter_transform.py::test_the_pieces_are_the_splitters"]),
    ("suites", "a document put into a store without an id comes back without one",
     ["key_value_store.py::test_a_document_without_an_id_comes_back_without_one",
      "key_value_store.py::test_nothing_is_lost"]),
    ("suites", "a sub-question that begins with a star is not lost",
     ["beside_langchain.py::test_a_starred_line_between_numbered_ones_is_a_sub_question"]),
    # Defects that were found
    ("D1", "a document is the same for each query, with its fields and no others",
     ["beside_langchain.py::test_d1_a_document_is_the_same_whatever_the_query",
      "beside_langchain.py::test_d1_a_field_of_one_document_does_not_come_into_another",
      "beside_langchain.py::test_d1_every_face_returns_the_documents_as_they_were_added"]),
    ("D1", "so MultiQueryRetriever returns each document once",
     ["beside_langchain.py::test_d1_langchains_multi_query_sees_that_documents_are_the_same"]),
    ("D1", "and so do get_unique_union and RAG fusion, whose key is dumps(document)",
     ["beside_langchain.py::test_d1_dumps_of_a_document_is_a_key"]),
    ("D1", "an ensemble merges our documents with those of LangChain's retrievers",
     ["beside_langchain.py::test_d1_langchains_ensemble_merges_with_its_own_retrievers"]),
    ("D1", "in JSON they are as large as LangChain's",
     ["beside_langchain.py::test_d1_documents_are_as_large_in_json_as_langchains"]),
    ("D1", "Chroma takes the details of a result, which are flat",
     ["documents.py::test_details_are_flat_values_that_json_and_chroma_hold"]),
    ("D1", "a result that is edited and put back leaves nothing of a search in the graph",
     ["beside_langchain.py::test_d1_an_edited_hit_that_is_put_back_pollutes_nothing",
      "beside_langchain.py::test_d1_an_edited_piece_of_a_document_is_refused"]),
    ("D2", "a retriever or store of LangChain goes into every strategy, fusion, reranker, engine",
     ["foreign_retrievers.py::test_a_retriever_of_langchain_goes_wherever_one_is_expected",
      "foreign_retrievers.py::test_every_strategy_is_tried",
      "foreign_retrievers.py::test_a_query_engine_answers_from_it_and_cites_its_documents",
      "foreign_retrievers.py::test_the_face_holds_a_retriever_of_langchain",
      "foreign_retrievers.py::test_an_evaluation_compares_it_with_ours"]),
    ("D2", "and one of ours that LangChain has is taken back",
     ["foreign_retrievers.py::test_a_face_given_back_is_its_retriever"]),
    ("D2", "the error says what is allowed",
     ["foreign_retrievers.py::test_what_is_no_retriever_is_refused_with_what_is_allowed"]),
    ("D2", "the lists of a decomposed question are fused",
     ["fuse_documents.py::"
      "test_the_lists_of_a_mapped_retriever_are_one_list_without_duplicates"]),
    ("D3", "a model can't leave the conditions of a vector store, a retriever, an engine",
     ["wishes.py::"
      "test_d3_a_tool_shows_what_langchains_shows_of_a_store_with_the_tenants_own_documents",
      "tools.py::test_a_vector_stores_own_filter_stays_when_a_model_filters",
      "tools.py::test_a_native_retrievers_own_filter_stays_when_a_model_filters",
      "tools.py::test_an_engines_own_filter_stays_when_a_model_filters",
      "tests/test_tenants.py::test_nothing_of_another_tenant_comes_to_light"]),
    ("D3", "a tool over a retriever whose filter can't be read is refused or checked",
     ["tools.py::test_a_retriever_that_cant_be_filtered_is_refused",
      "tools.py::test_conditions_are_checked_on_what_another_store_returns"]),
    ("D3", "a tenant's restriction of LangChain's own store holds in every holder, face and tool",
     ["foreign_retrievers.py::test_a_tenants_restriction_of_a_store_holds_in_every_holder",
      "foreign_retrievers.py::test_a_tenants_restriction_holds_for_a_store"]),
    ("D3", "the filter of a call is added to that of a retriever",
     ["vector_store_retriever.py::test_the_filter_of_a_call_is_added",
      "retriever.py::test_filter_in_the_constructor_and_in_the_call"]),
    ("D4", "a model with fallbacks works in every strategy, engine and extractor",
     ["beside_langchain.py::test_d4_a_model_with_fallbacks_in_every_strategy",
      "beside_langchain.py::test_d4_a_model_with_fallbacks_in_every_transform",
      "beside_langchain.py::test_d4_a_model_with_fallbacks_in_an_engine_and_an_extractor"]),
    ("D5", "$and, $or, $not, $ne, $nin, $like, $exists find what a function finds in LangChain",
     ["filter_operators.py::test_filters_find_what_a_function_in_langchains_store_finds"]),
    ("D5", "an unknown operator is an error and no empty answer",
     ["filter_operators.py::test_what_no_store_takes_is_an_error_and_not_an_empty_answer",
      "filter_operators.py::test_a_retrievers_own_filter_is_checked_when_it_is_made"]),
    ("D5", "a filter alone lists what meets it; all typical self-query questions are answered",
     ["structured_filter.py::test_typical_questions_are_answered",
      "filter_operators.py::test_filters_find_what_a_function_in_langchains_store_finds"]),
    ("D5", "only these files: by the document's id or source",
     ["filter_operators.py::test_only_these_files"]),
    ("D5", "dates are compared however a loader writes them",
     ["filter_operators.py::test_dates_are_compared_however_loaders_write_them"]),
    ("D5", "a model's values of a tool are read as the fields are, with ranges",
     ["tools.py::test_values_are_read_as_the_fields_are"]),
    ("D6", "a query engine has one retriever run, with its documents",
     ["beside_langchain.py::test_d6_a_query_engine_has_one_retriever_run_with_its_documents",
      "beside_langchain.py::test_d6_events_can_be_filtered_by_retrievers",
      "beside_langchain.py::test_d6_a_search_that_fails_ends_its_run"]),
    ("D6", "one sees what each branch of a fusion and each phrasing found, as in an ensemble",
     ["beside_langchain.py::test_d6_a_fusion_shows_what_each_branch_found_as_langchains_does",
      "beside_langchain.py::test_d6_each_phrasing_of_a_strategy_shows_what_it_found",
      "beside_langchain.py::test_d6_a_single_search_shows_its_documents_once",
      "beside_langchain.py::test_d6_a_batch_shows_the_documents_of_each_query"]),
    ("D7", "the source that loaders write is title and citation, and matches file patterns",
     ["beside_langchain.py::test_d7_sources_are_titles_and_citations",
      "beside_langchain.py::test_d7_the_passages_of_a_prompt_are_named_by_their_source",
      "beside_langchain.py::test_d7_file_patterns_match_sources",
      "beside_langchain.py::test_d7_a_changed_source_changes_the_pattern"]),
    ("D7", "the headers of MarkdownHeaderTextSplitter are headings",
     ["beside_langchain.py::test_d7_headers_of_langchains_markdown_splitter_are_headings"]),
    ("D8", "a host may validate every input of an engine, and use it as a tool or a node",
     ["beside_langchain.py::test_d8_inputs_are_validated_as_a_host_does",
      "beside_langchain.py::test_d8_an_engine_is_a_tool",
      "beside_langchain.py::test_d8_an_engine_is_a_node_of_a_langgraph_graph"]),
    ("D9", "max_concurrency holds within one call",
     ["beside_langchain.py::test_d9_max_concurrency_holds_for_the_model_calls_of_an_answer",
      "beside_langchain.py::test_d9_max_concurrency_holds_for_the_branches_of_a_fusion",
      "beside_langchain.py::test_d9_max_concurrency_holds_for_langchains_own_retrievers",
      "beside_langchain.py::"
      "test_d9_max_concurrency_holds_for_all_branches_and_sub_questions_together"]),
    ("D10", "embeddings that are async only work in async code",
     ["beside_langchain.py::test_d10_async_only_embeddings_work_as_in_langchains_store",
      "beside_langchain.py::test_d10_passages_are_embedded_once_however_many_ask",
      "beside_langchain.py::test_d10_a_trace_has_one_search_that_does_not_fail",
      "beside_langchain.py::test_d10_a_model_that_fails_is_named_and_asked_again",
      "beside_langchain.py::test_d10_sync_code_says_that_the_model_is_async_only",
      "beside_langchain.py::test_d10_an_async_function_embeds_in_both_kinds_of_code"]),
    ("D11", "prompt templates with LangChain's names and a system message are taken",
     ["beside_langchain.py::test_d11_langchains_prompts_in_every_strategy",
      "beside_langchain.py::test_d11_langchains_prompt_in_a_query_engine",
      "beside_langchain.py::test_d11_langchains_prompt_in_an_extractor",
      "beside_langchain.py::test_d11_langchains_prompt_in_a_step_of_a_chain",
      "beside_langchain.py::test_d11_a_prompt_without_a_place_for_the_query_says_what_to_write"]),
    ("D11", "a vector store of documents needs no model, as one of texts",
     ["beside_langchain.py::test_d11_a_vector_store_of_documents_needs_no_model"]),
    ("D11", "errors are in LangChain's words",
     ["beside_langchain.py::test_d11_errors_of_a_retriever_are_in_langchains_words",
      "beside_langchain.py::test_d11_errors_of_an_engine_and_a_store_are_in_langchains_words",
      "beside_langchain.py::"
      "test_d11_first_lines_of_other_stores_are_errors_that_say_what_there_is"]),
    # Ported programs
    ("programs", "eleven programs return the same in LangChain's form and in nodekin's",
     ["migrated_programs.py::test_both_forms_return_the_same",
      "migrated_programs.py::test_every_program_is_compared"]),
    ("programs", "k is 4, chunk_size counts characters, one line makes a retriever",
     ["document_retriever.py::test_as_many_documents_as_langchain_returns_by_default",
      "beside_langchain.py::"
      "test_the_size_of_a_chunk_is_in_characters_as_in_langchains_splitters",
      "document_retriever.py::test_bm25_retriever_from_documents",
      "document_retriever.py::test_parent_document_retriever",
      "document_retriever.py::test_parent_document_retriever_with_parents_of_its_own"]),
    ("programs", "create_agent, chat, persistence and evaluation are on a page that runs",
     ["tests/test_docs.py::test_code_blocks_run_and_print_what_follows"]),
    # Wishes of LangChain's users
    ("#16604", "delete from a parent retriever",
     ["tests/adapters/test_beside_parent_retrievers.py::test_a_removed_parent_takes_a_place_there",
      "vector_store.py::test_what_is_deleted_is_gone_everywhere"]),
    ("#29801, PR #16016", "index() updates parents and their children",
     ["document_index.py::test_incremental_cleanup", "document_index.py::test_full_cleanup",
      "tests/adapters/test_beside_parent_retrievers.py::"
      "test_an_updated_parent_is_found_by_what_it_no_longer_says_there"]),
    ("#11982", "documents with ids of their own beside a parent splitter",
     ["tests/adapters/test_beside_parent_retrievers.py::"
      "test_documents_with_ids_of_their_own_and_larger_chunks"]),
    ("#14267, #14777, #15644", "parents are kept in a file and opened again",
     ["wishes.py::test_parents_are_kept_in_one_file_and_are_those_of_langchains_two_stores",
      "document_retriever.py::test_a_file_is_opened_again"]),
    ("#11983", "several vectors of a document, fragments and parents together",
     ["wishes.py::test_fragments_titles_and_whole_documents_are_searched_together",
      "tests/adapters/test_beside_parent_retrievers.py::test_several_vectors_of_each_document"]),
    ("#20452", "a summary beside the document",
     ["migration.py::test_multi_vector_retriever",
      "tests/adapters/test_beside_parent_retrievers.py::test_which_vector_it_was"]),
    ("#17589", "k counts parents, child_k children; a threshold",
     ["migration.py::test_parent_document_retriever", "vector_store.py::test_k_counts_parents",
      "retriever.py::test_child_k_in_the_constructor_and_in_the_call",
      "migration.py::test_a_threshold_of_similarity"]),
    ("#23387", "maximal marginal relevance over parents",
     ["wishes.py::test_parents_that_differ_are_chosen_by_their_best_children"]),
    ("#9707, #37619", "async is async",
     ["tests/adapters/test_beside_parent_retrievers.py::"
      "test_parents_in_the_order_of_their_best_children",
      "migration.py::test_re_phrase_query_retriever",
      "retriever.py::test_nothing_blocks_the_event_loop",
      "vector_store.py::test_nothing_blocks_the_event_loop"]),
    ("#18105", "more nodes than the database takes at once",
     ["wishes.py::test_more_nodes_than_a_store_takes_at_once_are_given_in_parts"]),
    ("#16445, #4710", "scores",
     ["vector_store.py::test_the_same_as_langchains_own",
      "retriever.py::test_documents_are_the_native_results"]),
    ("#29884", "evidence, and offsets that are right",
     ["document_retriever.py::test_the_best_sentence_is_the_evidence",
      "text_splitter.py::test_where_langchains_own_go_astray"]),
    ("CJK", "Chinese is searched by words",
     ["document_retriever.py::test_bm25_retriever_from_documents"]),
    ("#30266, #13352, #25906", "filter and k of a call reach what composites hold",
     ["wishes.py::test_k_and_filter_of_a_call_reach_every_branch",
      "retriever.py::test_arguments_of_a_call_reach_what_others_hold"]),
    ("#37046", "a document that one list of an ensemble has twice counts once",
     ["wishes.py::test_a_document_that_one_list_has_twice_counts_once"]),
    ("ensemble", "documents are merged by their id, or by a metadata key",
     ["migration.py::test_ensemble_retriever",
      "foreign_retrievers.py::test_documents_without_ids_are_merged_as_by_langchains_ensemble",
      "foreign_retrievers.py::test_what_only_the_text_is_the_same_of_stays_apart",
      "wishes.py::test_documents_of_one_key_are_merged_as_in_an_ensemble",
      "fuse_documents.py::test_documents_are_merged_by_a_field_on_request"]),
    ("#37215", "weights, also of a call, rank constant, depth before reranking",
     ["wishes.py::test_weights_and_rank_constant_of_a_call_are_those_of_an_ensemble",
      "retriever.py::test_weights_in_the_call_reach_a_fusion_within",
      "wishes.py::test_as_many_candidates_as_wished_are_reranked"]),
    ("PR #27071, #26112, llama_index#14959",
     "an index of words is kept without pickle, filtered, added to",
     ["wishes.py::test_an_index_of_words_is_kept_without_pickle_filtered_and_added_to"]),
    ("#17034, #9231, #12696, #15591",
     "phrasings are seen and counted, and the query itself is kept",
     ["wishes.py::test_phrasings_beside_the_query_itself_are_seen_and_counted",
      "beside_langchain.py::test_d6_each_phrasing_of_a_strategy_shows_what_it_found",
      "migration.py::test_multi_query_retriever"]),
    ("community#65, #19142", "a reranker has a threshold and keeps metadata",
     ["wishes.py::test_a_reranker_keeps_metadata_and_drops_what_scores_low",
      "reranker.py::test_documents_are_copies"]),
    ("#3788, #10474, #21984", "self-queries with bounds, and, or, not, ne",
     ["structured_filter.py::test_typical_questions_are_answered",
      "structured_filter.py::test_comparisons", "migration.py::test_self_query"]),
    ("#9368", "self-queries with dates",
     ["structured_filter.py::test_typical_questions_are_answered",
      "filter_operators.py::test_dates_are_compared_however_loaders_write_them"]),
    ("langchainjs#4104", "self-queries with a threshold",
     ["wishes.py::test_self_queries_have_a_threshold"]),
    ("self-query", "over parents, as many as the question says",
     ["wishes.py::test_self_queries_find_parents_as_many_as_the_question_says"]),
    ("PR #16016", "one splitter a kind of file",
     ["beside_langchain.py::test_d7_file_patterns_match_sources"]),
    ("own retrievers", "a web search in an ensemble or under a strategy",
     ["foreign_retrievers.py::test_a_retriever_of_langchain_goes_wherever_one_is_expected",
      "foreign_retrievers.py::test_the_same_document_of_two_retrievers_is_one_result"]),
    ("own data", "what is in a vector store is searched there",
     ["foreign_retrievers.py::test_a_store_gives_its_scores_a_retriever_ranks",
      "foreign_retrievers.py::test_rare_conditions_find_as_many_as_there_are"]),
    ("near duplicates", "are dropped",
     ["wishes.py::test_near_duplicates_are_dropped_as_by_langchains_filter"]),
    ("order", "long-context order and newer first, by LangChain's pipelines and retrievers",
     ["wishes.py::test_langchains_pipelines_take_results_and_reranker",
      "wishes.py::test_time_weighted_retrieval_holds_a_vector_store_of_nodes"]),
    ("composites", "LangChain's own composites hold our retrievers",
     ["beside_langchain.py::test_d1_langchains_ensemble_merges_with_its_own_retrievers",
      "beside_langchain.py::test_d1_langchains_multi_query_sees_that_documents_are_the_same",
      "migration.py::test_contextual_compression_retriever", "migration.py::test_self_query",
      "wishes.py::test_example_selectors_and_memories_hold_a_vector_store_of_nodes",
      "wishes.py::test_time_weighted_retrieval_holds_a_vector_store_of_nodes"]),
    # What was promised besides
    ("search text", "page_content is searched, as in LangChain; fields where they are declared",
     ["searched_text.py::test_metadata_is_not_searched",
      "searched_text.py::test_nor_in_a_vector_store_of_nodes",
      "searched_text.py::test_it_is_searched_where_that_is_declared",
      "searched_text.py::test_headings_of_our_splitter_are_searched",
      "searched_text.py::test_a_store_of_langchain_embeds_what_is_searched",
      "tests/nodegraph/test_search_text.py::test_a_stored_index_of_another_search_text_is_never_used",
      "tests/nodegraph/test_search_text.py::test_evidence_names_the_fields"]),
    ("foreign retrievers", "are asked by batch and async, with top_k and filters, or say early no",
     ["foreign_retrievers.py::test_a_batch_is_one_batch_of_the_retriever",
      "foreign_retrievers.py::"
      "test_async_searches_are_those_of_the_store_and_do_not_block_the_loop",
      "foreign_retrievers.py::test_top_k_is_given_to_what_takes_it",
      "foreign_retrievers.py::test_conditions_leave_no_place_empty",
      "foreign_retrievers.py::test_conditions_that_could_be_silently_short_are_an_error",
      "foreign_retrievers.py::test_what_needs_kin_says_early_that_documents_have_none",
      "foreign_retrievers.py::test_a_document_comes_back_as_it_was"]),
    ("named tools", "answer parts of a question; what fails is told, all failed is raised",
     ["foreign_retrievers.py::test_tools_of_langchain_are_named_tools",
      "tests/retrievers/strategies/test_tool_question.py::"
      "test_what_fails_is_told_and_all_failed_is_raised"]),
    ("filters", "are pushed into the index, and added by every owner",
     ["vector_store.py::test_filters_are_checked_before_ranking",
      "query_engine.py::test_the_calls_filter_is_added_to_the_own_one",
      "tests/retrievers/test_filters_together.py::test_in_langchain",
      "tests/retrievers/test_filters_together.py::test_a_call_cant_replace_a_condition",
      "tests/retrievers/test_filters.py::"
      "test_a_filter_without_a_query_lists_what_meets_it_in_document_order"]),
    ("first lines", "from_documents, from_texts, from_graph, with every option of the search",
     ["document_retriever.py::test_documents_come_back_as_they_were_given",
      "document_retriever.py::test_from_texts", "document_retriever.py::test_from_graph",
      "document_retriever.py::test_a_document_index_has_the_same_first_line",
      "document_retriever.py::test_a_vector_store_with_and_without_an_embedding",
      "document_retriever.py::test_all_options_of_the_search_are_reached"]),
    # The code
    ("code", "names are those of the field",
     ["tests/test_architecture.py::test_names_are_the_fields"]),
    ("code", "a retriever says what it holds and whether it calls a model",
     ["graph_drawing.py::test_what_changes_results_stands_behind_what_it_holds",
      "batching.py::test_a_strategys_questions_are_not_embedded_before_it_has_made_others"]),
    ("code", "events of sync code reach async handlers in order",
     ["event_dispatch.py::test_slow_handlers_are_told_in_order_and_block_nobody"]),
]  # fmt: skip


def node_id(name: str) -> str:
    """Return the whole node id of a test that the table names."""
    return name if "/" in name else f"tests/adapters/langchain/test_{name}"


@pytest.mark.parametrize("name", sorted({name for *_, names in SHOWN for name in names}))
def test_what_shows_a_wish_exists_and_runs(name):
    assert problem(node_id(name)) is None


def test_every_finding_is_shown():
    where = {one.strip() for place, *_ in SHOWN for one in place.split(",")}
    assert {f"D{n}" for n in range(1, 12)} <= where
    assert all(names for *_, names in SHOWN)
    named = {name for *_, names in SHOWN for name in names}
    reproductions = Path(__file__).with_name("test_beside_langchain.py").read_text("utf-8")
    tests = re.findall(r"^(?:async )?def (test_\w+)", reproductions, re.MULTILINE)
    assert [test for test in tests if f"beside_langchain.py::{test}" not in named] == []


DOCUMENTS = [
    Document(
        "Green tea is steamed. Black tea is fermented. Tea comes from leaves.",
        metadata={"source": "docs/tea.md", "topic": "tea", "year": 1999}, id="tea",
    ),
    Document(
        "Rivers run to the sea. The sea is salty. Fish live in both.",
        metadata={"source": "docs/river.md", "topic": "water", "year": 2005}, id="river",
    ),
    Document(
        "绿茶是蒸青的。红茶是发酵的。茶来自云南的大树。",
        metadata={"source": "docs/茶.md", "topic": "tea", "year": 2010}, id="茶",
    ),
    Document(
        "Coffee is roasted. Coffee comes from beans. It is drunk hot.",
        metadata={"source": "docs/coffee.md", "topic": "coffee", "year": 2015}, id="coffee",
    ),
]  # fmt: skip
QUESTIONS = ["Which tea is fermented?", "Where do rivers run?", "红茶: hot or salty?", "hot beans"]


class Pairs(Embeddings):
    """Counts pairs of characters, so that hardly any two cosines are equal."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        counts = np.full(1024, 0.001)
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts.tolist()


class Listed(BaseRetriever):
    """Returns what it was given, as a web search might."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


class SharedLetters(BaseCrossEncoder):
    """Scores a pair by the characters that both have."""

    def score(self, text_pairs):
        return [float(len({*query} & {*text}) / len({*text})) for query, text in text_pairs]


def sentences():
    return RecursiveCharacterTextSplitter(
        separators=[". ", "。", ""], chunk_size=26, chunk_overlap=0, keep_separator="end"
    )


def theirs(documents=DOCUMENTS):
    store = InMemoryVectorStore(Pairs())
    store.add_documents(documents)
    return store


def filled():
    graph = NodeGraph(embed=Pairs(), progress=False)
    graph.create_node_group("child", as_transform(sentences()))
    graph.add(DOCUMENTS)
    return graph


@pytest.fixture
def graph():
    return filled()


def ids(documents):
    return [document.id for document in documents]


def texts(documents):
    return [document.page_content for document in documents]


# Parents


def test_parents_are_kept_in_one_file_and_are_those_of_langchains_two_stores(tmp_path):
    """There vectors are dumped, and documents are a file each; here it is one line."""
    vectors, documents = tmp_path / "vectors.json", LocalFileStore(tmp_path / "documents")
    store = InMemoryVectorStore(Pairs())
    settings = {"child_splitter": sentences(), "search_kwargs": {"k": 100}}
    parents = ParentDocumentRetriever(
        vectorstore=store, docstore=create_kv_docstore(documents), **settings
    )
    parents.add_documents(DOCUMENTS)
    store.dump(str(vectors))
    path = tmp_path / "tea.nodekin"
    ours = NodeGraphRetriever.from_documents(
        DOCUMENTS, Pairs(), store=path, child_splitter=sentences()
    )
    ours.graph.close()

    class Never(Pairs):
        def embed_documents(self, texts):
            assert not texts, "what was embedded is embedded again"
            return []

    kept = InMemoryVectorStore.load(str(vectors), Never())
    parents = ParentDocumentRetriever(
        vectorstore=kept, docstore=create_kv_docstore(documents), **settings
    )
    again = NodeGraphRetriever.from_documents([], Pairs(), store=path, child_splitter=sentences())
    for question in QUESTIONS:
        found = again.invoke(question)
        assert texts(found) == texts(parents.invoke(question))
        assert found == [next(d for d in DOCUMENTS if d.id == each.id) for each in found]
    again.graph.close()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kinds", [("child", "ROOT"), ("child", "title"), ("title", "ROOT")])
def test_fragments_titles_and_whole_documents_are_searched_together(graph, question, kinds):
    def title(node):
        return [f"All about {node.metadata['topic']}"]

    def parts(document, kind):
        if kind == "child":
            return sentences().split_text(document.page_content)
        return [document.page_content] if kind == "ROOT" else title(document)

    both = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Pairs()), docstore=InMemoryStore(),
        id_key="of", search_kwargs={"k": 100},
    )  # fmt: skip
    for kind in kinds:
        for document in DOCUMENTS:
            both.vectorstore.add_documents(
                [Document(part, metadata={"of": document.id}) for part in parts(document, kind)]
            )
    both.docstore.mset([(document.id, document) for document in DOCUMENTS])
    graph.create_node_group("title", title, trans_node=True)
    search = RecursiveRetriever(graph, kinds, "ROOT", "cosine", top_k=4)
    assert NodeGraphRetriever(retriever=search).invoke(question) == both.invoke(question)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("lambda_mult", [0.1, 0.5, 0.9])
def test_parents_that_differ_are_chosen_by_their_best_children(graph, question, lambda_mult):
    """LangChain's ``mmr`` of the best child of each parent; of all children two are of one."""
    children = [
        Document(part, metadata={"of": document.id})
        for document in DOCUMENTS
        for part in sentences().split_text(document.page_content)
    ]
    ranked = theirs(children).similarity_search(question, k=100)
    best = {child.metadata["of"]: child for child in reversed(ranked)}
    settings = {"k": 3, "fetch_k": 4, "lambda_mult": lambda_mult}
    expected = theirs(best.values()).max_marginal_relevance_search(question, **settings)
    store = NodeGraphVectorStore(graph, "child", target="ROOT")
    found = store.max_marginal_relevance_search(question, **settings)
    assert ids(found) == [child.metadata["of"] for child in expected]
    assert store.as_retriever(search_type="mmr", search_kwargs=settings).invoke(question) == found


def test_more_nodes_than_a_store_takes_at_once_are_given_in_parts():
    """As Chroma refuses more than 5,461."""

    class Limited(InMemoryVectorStore):
        def add_documents(self, documents, ids=None, **kwargs):
            if len(documents) > 5461:
                raise ValueError(f"batch size of {len(documents)} is greater than 5461")
            return super().add_documents(documents, ids, **kwargs)

    class Short(Embeddings):
        def embed_documents(self, texts):
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text):
            return [float(text[-4:-1] or 0), 1.0]

    document = Document("".join(f"{n:05}." for n in range(7000)), metadata={"n": 1}, id="all")
    splitter = RecursiveCharacterTextSplitter(
        separators=["."], chunk_size=6, chunk_overlap=0, keep_separator="end"
    )
    parents = ParentDocumentRetriever(
        vectorstore=Limited(Short()), docstore=InMemoryStore(), child_splitter=splitter
    )
    with pytest.raises(ValueError, match="batch size of 7000"):
        parents.add_documents([document])
    store = Limited(Short())
    ours = NodeGraphRetriever.from_documents(
        [document], Short(), child_splitter=splitter, index=as_index(store), similarity="cosine"
    )
    assert ours.invoke("04999.") == [document]
    assert len(store.store) == 7000


# Several retrievers


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1], [1, 0]])
def test_weights_and_rank_constant_of_a_call_are_those_of_an_ensemble(graph, question, weights):
    mine = theirs().as_retriever(search_kwargs={"k": 3})
    words = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "bm25", top_k=3))
    for constant in (1, 60):
        expected = EnsembleRetriever(retrievers=[mine, words], weights=weights, c=constant)
        fusion = FusionRetriever([mine, words], rank_constant=constant)
        ours = NodeGraphRetriever(retriever=fusion)
        found = expected.invoke(question)
        if 0 in weights:  # not asked here; there its documents come last
            found = mine.invoke(question)
        assert ours.invoke(question, weights=weights) == found


def test_documents_of_one_key_are_merged_as_in_an_ensemble():
    def page(text, url):
        return Document(text, metadata={"url": url})

    old = [page("Tea (2019)", "/tea"), page("Milk", "/milk"), page("Water", "/water")]
    new = [page("Coffee", "/coffee"), page("Tea (2024)", "/tea"), page("Milk!", "/milk")]
    parts = [Listed(documents=old), Listed(documents=new)]
    expected = EnsembleRetriever(retrievers=parts, weights=[0.7, 0.3], id_key="url").invoke("?")
    fusion = FusionRetriever(parts, weights=[0.7, 0.3], merge_by="url")
    assert NodeGraphRetriever(retriever=fusion).invoke("?") == expected
    assert texts(expected) == ["Tea (2019)", "Milk", "Water", "Coffee"]


def test_a_document_that_one_list_has_twice_counts_once():
    """There it counts twice, and wins over a document that both lists have."""
    one, two, three = (
        Document(text, metadata={"source": f"{text}.md"}) for text in ("Tea", "Milk", "Water")
    )
    double = [Listed(documents=[three, one, two, two]), Listed(documents=[one, three])]
    single = [Listed(documents=[three, one, two]), Listed(documents=[one, three])]
    weights = [0.9, 0.1]
    expected = EnsembleRetriever(retrievers=single, weights=weights).invoke("?")
    assert EnsembleRetriever(retrievers=double, weights=weights).invoke("?") != expected
    fusion = NodeGraphRetriever(retriever=FusionRetriever(double, weights=weights))
    assert fusion.invoke("?") == expected


@pytest.mark.parametrize("question", QUESTIONS)
async def test_k_and_filter_of_a_call_reach_every_branch(graph, question):
    """An ensemble ignores them; the same as where each branch was made with them."""
    teas = {"k": 2, "filter": lambda document: document.metadata["topic"] == "tea"}
    words = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "bm25", top_k=4))
    narrow = words.model_copy(update={"k": 2, "filter": {"topic": "tea"}})
    parts = [theirs().as_retriever(search_kwargs=teas), narrow]
    expected = EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5]).invoke(question)
    open_parts = [theirs().as_retriever(), words]
    ignoring = EnsembleRetriever(retrievers=open_parts, weights=[0.5, 0.5])
    call = {"k": 2, "filter": {"topic": "tea"}}
    assert {d.metadata["topic"] for d in ignoring.invoke(question, **call)} > {"tea"}
    fused = FusionRetriever(open_parts, top_k=4)
    reranker = Reranker("ModuleReranker", model=SharedLetters())
    ours = NodeGraphRetriever(retriever=fused)
    assert ours.invoke(question, **call) == expected == await ours.ainvoke(question, **call)
    ranked = NodeGraphRetriever(retriever=RerankRetriever(fused, reranker))
    assert set(ids(ranked.invoke(question, **call))) == set(ids(expected))


# Words


def test_an_index_of_words_is_kept_without_pickle_filtered_and_added_to(tmp_path, monkeypatch):
    pytest.importorskip("rank_bm25", reason="BM25Retriever needs rank-bm25")
    community = pytest.importorskip(
        "langchain_community.retrievers",
        reason="BM25Retriever is in langchain-community",
        exc_type=ImportError,
    )
    words = community.BM25Retriever.from_documents(
        DOCUMENTS, k=1, preprocess_func=lambda text: text.lower().replace(".", "").split()
    )
    path = tmp_path / "words.nodekin"
    NodeGraphRetriever.from_documents(DOCUMENTS, store=path, group="ROOT").graph.close()

    def never(*args, **kwargs):
        raise AssertionError("pickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    again = NodeGraphRetriever.from_documents([], store=path, group="ROOT", k=1)
    for question in ("fermented tea", "rivers run", "roasted beans"):
        assert again.invoke(question) == words.invoke(question)
    assert not hasattr(words, "add_documents")
    again.add_documents([Document("Cocoa is ground.", metadata={"topic": "cocoa"}, id="cocoa")])
    assert ids(again.invoke("ground cocoa")) == ["cocoa"]
    assert ids(again.invoke("hot tea, sea and coffee", filter={"topic": "water"})) == ["river"]
    again.graph.close()


def test_phrasings_beside_the_query_itself_are_seen_and_counted(graph):
    answer = "Where do rivers run?\nWhat is roasted?\nWhat is fermented?"
    others = [Document(f"Number {n}.", metadata={"n": n}, id=f"number {n}") for n in range(9)]
    mine = theirs([*DOCUMENTS, *others]).as_retriever(search_kwargs={"k": 1})
    model = FakeListChatModel(responses=[answer])
    expected = MultiQueryRetriever.from_llm(mine, model, include_original=True).invoke("红茶")
    strategy = NativeMultiQueryRetriever(mine, model, top_k=4)
    assert strategy.transform("红茶") == ["红茶", *answer.splitlines()]
    found = NodeGraphRetriever(retriever=strategy).invoke("红茶")
    assert sorted(ids(found)) == sorted(ids(expected))
    assert all(document in DOCUMENTS for document in found)
    two = NativeMultiQueryRetriever(mine, model, count=1)
    assert two.transform("红茶") == ["红茶", "Where do rivers run?"]


# Reranking


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_reranker_keeps_metadata_and_drops_what_scores_low(question):
    model = SharedLetters()
    expected = CrossEncoderReranker(model=model, top_n=4).compress_documents(DOCUMENTS, question)
    scores = model.score([(question, text) for text in texts(expected)])
    for cut in ({"cut_off": scores[1]}, {"relative_cut": scores[1] / scores[0]}):
        reranker = NodeGraphReranker(reranker=Reranker("ModuleReranker", model=model, **cut))
        found = reranker.compress_documents(DOCUMENTS, question)
        assert found == [d for d, s in zip(expected, scores, strict=True) if s >= scores[1]]


@pytest.mark.parametrize("question", QUESTIONS)
def test_langchains_pipelines_take_results_and_reranker(graph, question):
    """Near duplicates out, reranked, in another order: by LangChain's own transformers."""
    filters = pytest.importorskip(
        "langchain_community.document_transformers",
        reason="EmbeddingsRedundantFilter is in langchain-community",
        exc_type=ImportError,
    )
    double = Document("Coffee is roasted. Coffee comes from beans. It is drunk hot!", id="double")
    graph.add(double)
    reranker = Reranker("ModuleReranker", model=SharedLetters())
    found = []
    for base, ranking in (
        (theirs([*DOCUMENTS, double]).as_retriever(search_kwargs={"k": 5}),
         CrossEncoderReranker(model=SharedLetters(), top_n=3)),
        (NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine", top_k=5)),
         NodeGraphReranker(reranker=reranker, top_n=3)),
    ):  # fmt: skip
        steps = [
            filters.EmbeddingsRedundantFilter(embeddings=Pairs()), ranking,
            filters.LongContextReorder(),
        ]  # fmt: skip
        pipeline = DocumentCompressorPipeline(transformers=steps)
        compressing = ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=base)
        found.append([(d.page_content, d.metadata) for d in compressing.invoke(question)])
    assert found[0] == found[1]
    assert len(found[0]) == 3


@pytest.mark.parametrize("question", QUESTIONS)
def test_near_duplicates_are_dropped_as_by_langchains_filter(question):
    filters = pytest.importorskip(
        "langchain_community.document_transformers",
        reason="EmbeddingsRedundantFilter is in langchain-community",
        exc_type=ImportError,
    )
    double = Document(
        "Coffee is roasted. Coffee comes from beans. It is drunk hot!",
        metadata={"source": "copy.md"}, id="double",
    )  # fmt: skip
    store = theirs([*DOCUMENTS, double])
    ranked = store.similarity_search(question, k=5)
    redundant = filters.EmbeddingsRedundantFilter(embeddings=Pairs(), similarity_threshold=0.95)
    assert len(redundant.transform_documents(ranked)) == 4
    for near in (NearDuplicateFilter(model=Pairs()), NearDuplicateFilter()):
        ours = NodeGraphRetriever(retriever=RerankRetriever(store, near, top_k=4))
        found = ours.invoke(question)
        # Of two that are alike the better one is kept; theirs may keep the other.
        assert found == [d for d in ranked if d.id != _worse(ranked)]


def _worse(ranked):
    return [document.id for document in ranked if document.id in ("coffee", "double")][-1]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_as_many_candidates_as_wished_are_reranked(graph, question, depth):
    mine = theirs().as_retriever()
    words = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "bm25", top_k=4))
    candidates = EnsembleRetriever(retrievers=[mine, words], weights=[0.5, 0.5]).invoke(question)
    model = SharedLetters()
    reranker = CrossEncoderReranker(model=model, top_n=2)
    expected = reranker.compress_documents(candidates[:depth], question)
    ranked = RerankRetriever(
        FusionRetriever([mine, words]), "ModuleReranker", model=model, fetch=depth, top_k=2
    )
    assert NodeGraphRetriever(retriever=ranked).invoke(question) == expected


# Questions with conditions


def self_query(store, filter, limit=None, **settings):
    structured = StructuredQuery(query="tea leaves", filter=filter, limit=limit)
    return SelfQueryRetriever(
        query_constructor=RunnableLambda(lambda _: structured),
        vectorstore=store,
        structured_query_translator=StructuredFilter(),
        **settings,
    )


SINCE = Comparison(Comparator.GTE, "year", 2000)


def test_self_queries_find_parents_as_many_as_the_question_says(graph):
    store = NodeGraphVectorStore(graph, "child", target="ROOT")
    parents = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Pairs()), docstore=InMemoryStore(),
        child_splitter=sentences(),
        search_kwargs={"k": 100, "filter": lambda child: child.metadata["year"] >= 2000},
    )  # fmt: skip
    parents.add_documents(DOCUMENTS, ids=ids(DOCUMENTS))
    expected = parents.invoke("tea leaves")
    assert self_query(store, SINCE).invoke("?") == expected
    limited = self_query(store, SINCE, limit=2, use_original_query=False)
    assert limited.invoke("?") == expected[:2]


def test_self_queries_have_a_threshold(graph):
    store = NodeGraphVectorStore(graph)
    scored = theirs().similarity_search_with_score(
        "tea leaves", filter=lambda document: document.metadata["year"] >= 2000
    )
    (first, _), (_, second), *_ = scored
    threshold = (scored[0][1] + second) / 2
    retriever = self_query(
        store,
        SINCE,
        search_type="similarity_score_threshold",
        search_kwargs={"score_threshold": threshold},
    )
    assert retriever.invoke("?") == [first]


def test_time_weighted_retrieval_holds_a_vector_store_of_nodes():
    now = datetime.now()

    def memories():
        return [
            Document(
                document.page_content,
                metadata={**document.metadata, "last_accessed_at": now - timedelta(days=days)},
                id=document.id,
            )
            for document, days in zip(DOCUMENTS, (1000, 0, 2000, 0), strict=True)
        ]

    found = []

    class Scored(InMemoryVectorStore):
        def _select_relevance_score_fn(self):
            return lambda score: score

    for store in (Scored(Pairs()), NodeGraphVectorStore(NodeGraph(embed=Pairs()))):
        retriever = TimeWeightedVectorStoreRetriever(vectorstore=store, decay_rate=0.5, k=2)
        retriever.add_documents(memories(), current_time=now)
        found.append([texts(retriever.invoke(question)) for question in QUESTIONS])
    assert found[0] == found[1]


EXAMPLES = [
    {"question": "Which tea is green?", "answer": "The steamed one."},
    {"question": "Where do rivers run?", "answer": "To the sea."},
    {"question": "红茶怎么做？", "answer": "发酵。"},
]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.parametrize("question", QUESTIONS)
async def test_example_selectors_and_memories_hold_a_vector_store_of_nodes(question):
    chosen = []
    for kind in (InMemoryVectorStore, NodeGraphVectorStore):
        nearest = SemanticSimilarityExampleSelector.from_examples(EXAMPLES, Pairs(), kind, k=1)
        nearest.add_example({"question": "What are beans for?", "answer": "Coffee."})
        diverse = MaxMarginalRelevanceExampleSelector.from_examples(
            EXAMPLES, Pairs(), kind, k=2, fetch_k=3
        )
        store = kind.from_texts(["Hello."], Pairs())
        memory = VectorStoreRetrieverMemory(retriever=store.as_retriever())
        for example in EXAMPLES:
            memory.save_context({"input": example["question"]}, {"output": example["answer"]})
        asked = {"question": question}
        chosen.append(
            [
                nearest.select_examples(asked),
                await nearest.aselect_examples(asked),
                diverse.select_examples(asked),
                await diverse.aselect_examples(asked),
                memory.load_memory_variables({"prompt": question}),
            ]
        )
    theirs, ours = chosen
    assert ours == theirs


# Tools


def test_d3_a_tool_shows_what_langchains_shows_of_a_store_with_the_tenants_own_documents():
    """The three reproductions: whatever the model asks, B's texts stay where they are."""
    documents = [
        Document(f"{kind} tea of {t}", metadata={"tenant": t, "topic": "tea"}, id=f"{kind} {t}")
        for t in "AB"
        for kind in ("Green", "Black", "White")
    ]
    own = [document for document in documents if document.metadata["tenant"] == "A"]
    names = ("search", "Search texts.")
    separate = create_retriever_tool(
        theirs(own).as_retriever(), *names, response_format="content_and_artifact"
    )
    graph = NodeGraph(embed=Pairs(), progress=False)
    graph.add(documents)
    native = Retriever(graph, "ROOT", "cosine", filters={"tenant": "A"}, top_k=4)
    store = NodeGraphVectorStore(graph)
    faces = [
        store.as_retriever(search_kwargs={"filter": {"tenant": "A"}}),
        NodeGraphRetriever(retriever=native),
    ]
    engine = QueryEngine(native, lambda prompt: "It is so [1].")

    def documents_of(tool, **arguments):
        call = {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
        artifact = tool.invoke(call).artifact
        return artifact["context"] if isinstance(artifact, dict) else artifact

    fields = {"topic": "a topic", "tenant": "a tenant"}
    for retriever in faces:
        tool = retriever_tool(retriever, *names, filter_by=fields)
        expected = documents_of(separate, query="black tea of B")
        assert len(expected) == 3
        assert documents_of(tool, query="black tea of B") == expected
        assert documents_of(tool, query="black tea of B", topic="tea") == expected
        assert documents_of(tool, query="black tea of B", tenant="B") == []
        assert documents_of(tool, query="black tea of B", tenant=["A", "B"]) == expected
    for held in (engine, NodeGraphQueryEngine(engine=engine)):
        tool = answer_tool(held, *names, filter_by=fields)
        assert documents_of(tool, question="black tea of B", topic="tea") == expected
        assert documents_of(tool, question="black tea of B", tenant="B") == []
