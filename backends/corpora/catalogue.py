"""The public data sets that this project's loaders read, by name. No data and no text of theirs is in the project."""

from .datasets import Dataset, Source

_ENTRIES = (
    Dataset(
        name="cacm",
        summary="CACM abstracts 1958-1979 with dates, queries and judgements: retrieval, recency",
        licence="none stated for the collection; the carrying repositories are Apache-2.0",
        sources=(
            Source("castorini/anserini", "81e3414573a39ad7433d271c5cadc360bc821945", ("*cacm.tar.gz",)),
            Source(
                "castorini/anserini-tools",
                "5b819c1a45c8a0a3ec9426f476694f44a29dfaf3",
                ("topics-and-qrels/topics.cacm.txt", "topics-and-qrels/qrels.cacm.txt"),
            ),
        ),
    ),
    Dataset(
        name="cranfield",
        summary="Cranfield 1400: aerodynamics abstracts, 225 queries, full judgements: retrieval",
        licence="none stated for the collection; the carrying repository is GPL-3.0",
        sources=(
            Source(
                "xyxxyyxy/cranvectors",
                "78c84cb834dfa003715b9a7c091548a49682bf86",
                ("cran.all.*", "cran.qry", "cranqrel"),
            ),
        ),
    ),
    Dataset(
        name="feedbackqa",
        summary="crowd ratings of retrieved passages with reasons: feedback-driven reranking",
        licence="none stated",
        sources=(
            Source("McGill-NLP/feedbackqa", "0e37bee3c27aaf9269bf9c2946be0426e07c64fe", ("feedbackQA_data/*/*.json",)),
        ),
    ),
    Dataset(
        name="halueval",
        summary="human-labelled hallucinations of a chat model: faithfulness verifiers",
        licence="MIT",
        sources=(
            Source(
                "RUCAIBox/HaluEval",
                "b7253db3cdaa0ab2c382f92b26b390109174f77e",
                ("data/general_data.json", "data/qa_data.json"),
            ),
        ),
        rows={"general_data.json": 4507, "qa_data.json": 10000},
    ),
    Dataset(
        name="locomo",
        summary="10 long dated conversations, questions that name their evidence turns: memory",
        licence="CC BY-NC 4.0",
        sources=(Source("snap-research/LoCoMo", "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376", ("data/locomo10.json",)),),
        rows={"locomo10.json": 10},
    ),
    Dataset(
        name="memdaily",
        summary="Chinese daily-life messages, a question each, evidence ids: memory and its filters",
        licence="none stated",
        sources=(
            Source(
                "nuster1128/MemSim",
                "db9d5d552d6cb1d859f692eb7e6c0fd6d61d3815",
                ("data_generation/final_dataset/messages_and_QAs/*.json",),
            ),
        ),
    ),
    Dataset(
        name="memorybank",
        summary="15 users, 10 dated days of chat, English and Chinese: forgetting curves",
        licence="MIT",
        sources=(
            Source(
                "zhongwanjun/MemoryBank-SiliconFriend",
                "cf61c4196e4cfdb0f2b7a0316249fa40312dc3a9",
                (
                    "eval_data/en/memory_bank_en.json",
                    "eval_data/en/probing_questions_en.jsonl",
                    "eval_data/cn/memory_bank_cn.json",
                    "eval_data/cn/probing_questions_cn.jsonl",
                ),
            ),
        ),
        rows={"memory_bank_en.json": 15, "memory_bank_cn.json": 15},
    ),
    Dataset(
        name="multihop",
        summary="samples of one- and many-hop questions, several with paragraphs: adaptive retrieval",
        licence="none stated by the carrying repositories; each upstream set has its own",
        sources=(
            Source(
                "AdelWang/MIGRES",
                "1de6265c9ca1014054d6ba875738e785830908f8",
                ("data/hotpot.json", "data/musique.json", "data/odqa.json", "data/strategy.json", "data/wikihop.json"),
            ),
            Source(
                "RAG-Gym/RAG-Gym",
                "2abbdd48380b3a27eb143be67f29410a8ed5d5e6",
                ("dataset/bamboogle/Bamboogle_Prerelease.tsv",),
            ),
        ),
    ),
    Dataset(
        name="nq_open",
        summary="NQ-open dev: factoid questions without documents: closed-book baseline",
        licence="CC BY-SA 3.0",
        sources=(
            Source(
                "google-research-datasets/natural-questions",
                "fb26a3073b1fe636c97302890a27b491d6530130",
                ("nq_open/NQ-open.dev.jsonl",),
            ),
        ),
        rows={"NQ-open.dev.jsonl": 3610},
    ),
    Dataset(
        name="obd",
        summary="Open Bandit sample, men: logged clicks with propensities: off-policy evaluation",
        licence="CC BY 4.0 by the data set's page; the carrying repository is Apache-2.0",
        sources=(
            Source(
                "st-tech/zr-obp",
                "8cbd5fa4558b7ad2ba4781546d6604e4cc3e07c4",
                ("obp/dataset/obd/random/men/*.csv", "obp/dataset/obd/bts/men/*.csv"),
            ),
        ),
        rows={"men.csv": 10000, "item_context.csv": 34},
    ),
    Dataset(
        name="pii_anon_adversarial",
        summary="synthetic adversarial personal data: what a memory must not store",
        licence="CC0-1.0 (data), Apache-2.0 (code)",
        sources=(
            Source(
                "subhash-holla/pii-anon-eval-data",
                "19ce76945513f4faaf6d2c8968ab32ac2c25d5bf",
                ("*adversarial*.jsonl",),
            ),
        ),
    ),
    Dataset(
        name="pii_presidio",
        summary="synthetic sentences with spans of personal data: redaction before storage",
        licence="MIT; fake names CC BY-SA 3.0 US",
        sources=(
            Source(
                "microsoft/presidio-research",
                "7622dec1e5f7d25dc60b57c28c39f4c4af197018",
                ("data/synth_dataset_v2.json",),
            ),
        ),
        rows={"synth_dataset_v2.json": 1500},
    ),
    Dataset(
        name="pubmedqa",
        summary="PubMedQA: biomedical yes/no/maybe with abstracts; ground truth of the 500 test ones",
        licence="MIT",
        sources=(
            Source(
                "pubmedqa/pubmedqa",
                "1cbae8e92f72f20c8d3747cbb3bf5bc53554d997",
                ("data/ori_pqal.json", "data/test_ground_truth.json"),
            ),
        ),
        rows={"ori_pqal.json": 1000, "test_ground_truth.json": 500},
    ),
    Dataset(
        name="ramdocs",
        summary="questions with correct, misinforming and noise documents: corrective retrieval",
        licence="MIT",
        sources=(Source("HanNight/RAMDocs", "d44454c9ebb0bf513d8236a03decc9fb58704cad", ("*RAMDocs_test.jsonl",)),),
        rows={"RAMDocs_test.jsonl": 500},
    ),
    Dataset(
        name="realtimeqa",
        summary="weekly news quizzes since 2022 with the search results of their week: freshness",
        licence="none stated; the documents are excerpts of news sites",
        sources=(
            Source(
                "realtimeqa/realtimeqa_public",
                "bc15fba7f45535fbdb2674d03de7b65a2a9e065f",
                ("past/*/*_qa.jsonl", "past/*/*_qa_nota.jsonl", "past/*/*_gcs.jsonl"),
            ),
        ),
    ),
    Dataset(
        name="rgb",
        summary="RGB: noise, rejection, integration and counterfactuals, English and Chinese",
        licence="CC BY-NC-SA 4.0",
        sources=(
            Source(
                "chen700564/RGB",
                "65ec39e40e7dc9abb50e9bf1b4f32be3f6f16615",
                (
                    *(f"data/{language}{part}.json" for language in ("en", "zh") for part in ("", "_refine", "_int")),
                    "data/en_fact.json",
                    "data/zh_fact.json",
                ),
            ),
        ),
        rows={"en_fact.json": 100, "zh_fact.json": 100, "zh_refine.json": 300, "zh_int.json": 100},
    ),
    Dataset(
        name="sgd",
        summary="Schema-Guided Dialogue: slot values in force at each user turn: recurrent memory",
        licence="CC BY-SA 4.0",
        sources=(
            Source(
                "google-research-datasets/dstc8-schema-guided-dialogue",
                "e852981ae34990f4358979625854259302feaa78",
                ("dev/dialogues_*.json", "dev/schema.json", "test/dialogues_*.json", "test/schema.json"),
            ),
        ),
        rows={
            "dialogues_003.json": 128,
            "dialogues_007.json": 68,
            "dialogues_010.json": 128,
            "dialogues_034.json": 54,
        },
    ),
    Dataset(
        name="shakespeare_style",
        summary="parallel lines, Shakespeare and modern English: style fit",
        licence="none stated; the modern side comes from a commercial study guide: research only",
        sources=(
            Source(
                "harsh19/Shakespearizing-Modern-English",
                "e2669eadf12b59573847ac725ce6ce685eff528d",
                ("data/valid.*", "data/test.*"),
            ),
        ),
    ),
    Dataset(
        name="skr",
        summary="whether retrieval made an answer better, worse or the same: adaptive retrieval",
        licence="MIT (training labels); none stated (development set)",
        sources=(
            Source("RUC-NLPIR/FlashRAG", "1ee524901aa3daf009f97b7a31e7a1b58eee8206", ("*/skr_training.json",)),
            Source(
                "THUNLP-MT/SKR",
                "edb63f28b7a52394b026acc3b0f29e1f6dc307cf",
                ("data/dev.json", "results/cot_dev.json", "results/cot_dev_ir.json"),
            ),
        ),
        rows={"skr_training.json": 849},
    ),
    Dataset(
        name="timeqa",
        summary="time-sensitive questions over the paragraphs of one page: dated retrieval, abstention",
        licence="BSD-3-Clause",
        sources=(
            Source(
                "wenhuchen/Time-Sensitive-QA",
                "38b05989070c1168b2bef3d5a2656afeeba763dc",
                ("dataset/human_annotated_test.json",),
            ),
        ),
        rows={"human_annotated_test.json": 257},
    ),
    Dataset(
        name="truthfulqa",
        summary="questions with true and false references: calibration without retrieval (a fork)",
        licence="Apache-2.0",
        sources=(Source("koppula/TruthfulQA", "4dee2311b23de20b43bfc12ace7037f3f71ba421", ("TruthfulQA.csv",)),),
        rows={"TruthfulQA.csv": 790},
    ),
    Dataset(
        name="unieval_human",
        summary="human scores of dialogue, data-to-text and summaries: writing evaluation",
        licence="MIT (repository); each upstream set has its own",
        sources=(
            Source(
                "maszhongming/UniEval",
                "d33e7b6cfebe97b2bafe435adbd818230d5a416a",
                tuple(
                    f"reproduce/data/{path}.json"
                    for path in (
                        "data2text/sfhot",
                        "data2text/sfres",
                        "dialogue/topical_chat",
                        "fact/qags_cnndm",
                        "fact/qags_xsum",
                    )
                ),
            ),
        ),
        rows={
            "sfhot.json": 875,
            "sfres.json": 1181,
            "topical_chat.json": 360,
            "qags_cnndm.json": 235,
            "qags_xsum.json": 239,
        },
    ),
    Dataset(
        name="uss",
        summary="user satisfaction of dialogue turns by three annotators: implicit feedback",
        licence="none stated",
        sources=(
            Source(
                "sunnweiwei/user-satisfaction-simulation",
                "8ba06bd92570fd94d3ec0cb828aad45172be71b2",
                ("dataset/*.txt",),
            ),
        ),
    ),
    Dataset(
        name="writingbench",
        summary="writing tasks with length requirements and rubrics, Chinese and English",
        licence="Apache-2.0",
        sources=(
            Source(
                "X-PLUG/WritingBench",
                "ae2d5176449b7b769815482641d35926f26793eb",
                ("benchmark_query/requirement/length/length_subset.jsonl",),
            ),
        ),
        rows={"length_subset.jsonl": 222},
    ),
    Dataset(
        name="xquad",
        summary="SQuAD questions over 240 paragraphs in English and Chinese: bilingual retrieval",
        licence="CC BY-SA 4.0",
        sources=(
            Source(
                "google-deepmind/xquad",
                "7d30520c717524000f0d9d2f9c10a069acd9d285",
                ("xquad.en.json", "xquad.zh.json"),
            ),
        ),
    ),
)

DATASETS: dict[str, Dataset] = {entry.name: entry for entry in _ENTRIES}
